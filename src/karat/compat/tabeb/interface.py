"""TabEB's interface: the base of encoders, models by their names, the leaderboard, ``display``."""

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
    random_encoder,
    skrub_encoder,
)
from karat.errors import DefinitionError, did_you_mean, unknown

__all__ = ["TabEBBaseEncoder", "display", "get_leaderboard", "get_model"]

ENCODERS: dict[str, Callable[..., TabEBBaseEncoder]] = {
    "random_encoder": random_encoder,
    "skrub_encoder": skrub_encoder,
    "carte_encoder": carte_encoder,
}


def get_model(model_name: str, revision: str | None = None, **kwargs: Any) -> Any:
    """Return an encoder by its name: TabEB's three, or any that Karat knows.

    ``kwargs`` are the encoder's parameters. A library or file that is missing is not an error
    here: the encoder's row of scores is empty then, with the reason. ``revision`` is for models
    that have a parameter of this name; for others it is refused.

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
        raise DefinitionError(f"{model_name} is a predictor; TabEB's tasks take encoders.")
    if model.unavailable:
        return AbsentRows(model_name, model.unavailable)
    made = copy_of(model.prototype)
    _check_revision(model_name, revision, _params(made))
    given = kwargs if revision is None else {**kwargs, "revision": revision}
    made = _with_params(made, model_name, given)
    with contextlib.suppress(AttributeError):  # it may have a name that cannot be changed
        made.name = model_name
    return made


def display(*things: Any) -> None:
    """Show things: in a notebook as it does itself, elsewhere as text on the standard output."""
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
            f'model "{name}" has no revisions, so {revision!r} cannot be had; leave revision out.'
        )


def _with_params(model: Any, name: str, given: Mapping[str, Any]) -> Any:
    known = _params(model)
    for param in given:
        if param not in known:
            raise DefinitionError(
                f'model "{name}" has no parameter "{param}".{did_you_mean(param, known)} '
                f"It has: {', '.join(sorted(known)) or 'none'}."
            )
    return model.set_params(**given) if given else model
