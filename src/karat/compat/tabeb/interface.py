"""TabEB's interface: encoder base class, models by name, leaderboard and ``display``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from karat import registry
from karat.catalogue import Catalogue
from karat.compat.tabeb.board import get_leaderboard
from karat.compat.tabeb.contestants import copy_of
from karat.compat.tabeb.encoders import (
    AbsentRows,
    TabEBBaseEncoder,
    carte_encoder,
    check_params,
    random_encoder,
    skrub_encoder,
)
from karat.errors import DefinitionError, unknown

__all__ = ["TabEBBaseEncoder", "display", "get_leaderboard", "get_model"]

ENCODERS: dict[str, Callable[..., TabEBBaseEncoder]] = {
    "random_encoder": random_encoder,
    "skrub_encoder": skrub_encoder,
    "carte_encoder": carte_encoder,
}


def get_model(model_name: str, revision: str | None = None, **kwargs: Any) -> Any:
    """Return an encoder by name: TabEB's three, or any Karat encoder.

    ``kwargs`` are the encoder's parameters. A missing library or file is not an error here: the
    evaluation then reports the reason instead of scores. ``revision`` is accepted for models with
    a parameter of this name only.

    >>> get_model("random_encoder", embedding_size=4).transform([[1], [2]]).shape
    (2, 4)
    """
    if model_name in ENCODERS:
        _check_revision(model_name, revision, ())
        return ENCODERS[model_name](**kwargs)
    catalogue = Catalogue()
    defined = [*catalogue.definitions.names("models"), *registry.models]
    if not isinstance(model_name, str) or not (model_name in defined or ":" in model_name):
        raise unknown("model", str(model_name), [*ENCODERS, *defined])
    model = catalogue.model(model_name)
    if model.role != "encoder":
        raise DefinitionError(f"{model_name} is a predictor; TabEB tasks need an encoder.")
    if model.unavailable:
        return AbsentRows(model_name, model.unavailable)
    made = copy_of(model.prototype)
    _check_revision(model_name, revision, _params(made))
    given = kwargs if revision is None else {**kwargs, "revision": revision}
    check_params(model_name, given, _params(made))
    made = made.set_params(**given) if given else made
    with contextlib.suppress(AttributeError):  # a read-only name
        made.name = model_name
    return made


def display(*things: Any) -> None:
    """Display objects: in a notebook with IPython, elsewhere as text on standard output."""
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        from IPython.display import display as show

        show(*things)
        return
    for thing in things:
        text = thing.to_string() if hasattr(thing, "to_string") else str(thing)
        sys.stdout.write(f"{text}\n")


def _params(model: Any) -> Mapping[str, Any]:
    return model.get_params() if hasattr(model, "get_params") else {}


def _check_revision(name: str, revision: str | None, known: Any) -> None:
    if revision is not None and "revision" not in known:
        raise DefinitionError(
            f'model "{name}" has no revisions, got revision={revision!r}; omit it.'
        )
