"""Artifacts: what a fitted model leaves beside its predictions, where its definition asks for it.

A model may have ``artifacts(names)``, which returns contents by ``"kind/file"``: text, bytes, a
table or the path of a file or folder. One without it can still leave ``models``: itself, pickled.
Nothing here, and nothing that reads run folders, ever loads a pickle unless it is asked to by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from karat.errors import ContractError

#: folders of a run that are not for artifacts
TAKEN = ("jobs", "predictions", "scores", "missing")
MODELS = "models"


def collect(fitted: Any, names: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """Return the artifacts asked for, by ``kind/file``, and notes about those there are none of."""
    found: dict[str, bytes] = {}
    if callable(getattr(fitted, "artifacts", None)):
        for name, content in _checked(fitted.artifacts(list(names))).items():
            found |= _contents(name, content)
    if MODELS in names and not any(name.startswith(f"{MODELS}/") for name in found):
        import cloudpickle

        found[f"{MODELS}/model.pkl"] = cloudpickle.dumps(fitted)
    kinds = {name.partition("/")[0] for name in found}
    return found, [f'it leaves no artifact "{name}"' for name in names if name not in kinds]


def _checked(made: Any) -> Mapping[str, Any]:
    if not isinstance(made, Mapping):
        raise ContractError(f"artifacts must return a mapping by name, not {type(made).__name__}.")
    return made


def _contents(name: str, content: Any) -> dict[str, bytes]:
    """Return the files of one artifact; a name may not lead out of its folder."""
    parts = PurePosixPath(str(name)).parts
    if len(parts) < 2 or ".." in parts or parts[0] in (*TAKEN, "/") or "\\" in str(name):
        raise ContractError(
            f'an artifact is called "kind/file", inside a folder of its own; "{name}" is not.'
        )
    if isinstance(content, Path) and content.is_dir():
        inside = sorted(path for path in content.rglob("*") if path.is_file())
        return {f"{name}/{p.relative_to(content).as_posix()}": p.read_bytes() for p in inside}
    if isinstance(content, Path):
        return {str(name): content.read_bytes()}
    if isinstance(content, pd.DataFrame):
        return {str(name): content.to_csv(index=False).encode()}
    if isinstance(content, str | bytes):
        return {str(name): content.encode() if isinstance(content, str) else content}
    raise ContractError(
        f'the artifact "{name}" is {type(content).__name__}; it must be text, bytes, a table or '
        f"a path."
    )
