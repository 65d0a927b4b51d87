"""Artifacts: files that a fitted model stores in the run folder, if its definition names them.

A model may have a method ``artifacts(names)`` that returns contents by ``"kind/file"``: text,
bytes, a table, or the path of a file or folder. Any model can store ``models``: itself, pickled.
Karat loads such a pickle only on explicit request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from karat.errors import ContractError

#: folders of a run that cannot hold artifacts
TAKEN = ("jobs", "predictions", "scores", "missing")
MODELS = "models"


def collect(fitted: Any, names: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """Return the requested artifacts by ``kind/file``, and a note for each missing one."""
    found: dict[str, bytes] = {}
    if callable(getattr(fitted, "artifacts", None)):
        made = fitted.artifacts(list(names))
        if not isinstance(made, Mapping):
            raise ContractError(f"artifacts must return a mapping, got {type(made).__name__}.")
        for name, content in made.items():
            found |= _contents(name, content)
    if MODELS in names and not any(name.startswith(f"{MODELS}/") for name in found):
        import cloudpickle

        found[f"{MODELS}/model.pkl"] = cloudpickle.dumps(fitted)
    kinds = {name.partition("/")[0] for name in found}
    return found, [f'the model has no artifact "{name}"' for name in names if name not in kinds]


def _contents(name: str, content: Any) -> dict[str, bytes]:
    """Return the files of one artifact; its name must stay inside the artifact's folder."""
    parts = PurePosixPath(str(name)).parts
    if len(parts) < 2 or ".." in parts or parts[0] in (*TAKEN, "/") or "\\" in str(name):
        raise ContractError(
            f'an artifact name must be "kind/file" in a folder of its own, got "{name}".'
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
        f'artifact "{name}" must be str, bytes, DataFrame or Path, got {type(content).__name__}.'
    )
