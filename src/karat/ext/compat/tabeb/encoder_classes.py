"""TabEB's encoders as classes, with the arguments of ``get_model``."""

from __future__ import annotations

from typing import Any

from karat.ext.compat.tabeb.encoders import (
    CarteRows,
    RandomRows,
    SkrubRows,
    carte_encoder,
    skrub_encoder,
)


class RandomEncoder(RandomRows):
    """``get_model("random_encoder")``."""


class _WithOptions:
    """Parameters for scikit-learn: those of the constructor, and all options."""

    named: tuple[str, ...]
    options: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, of which the options are some."""
        return {**{name: getattr(self, name) for name in self.named}, **(self.options or {})}

    def set_params(self, **params: Any) -> Any:
        """Change parameters, and return self."""
        self.__init__(**{**self.get_params(), **params})  # type: ignore[misc]
        return self


class SkrubEncoder(_WithOptions, SkrubRows):
    """``get_model("skrub_encoder")``; options are those of skrub's ``TableVectorizer``."""

    named = ("random_state",)

    def __init__(self, random_state: int | None = None, **options: Any) -> None:
        checked = skrub_encoder(random_state, **options)
        super().__init__(checked.options, random_state)


class CARTEEncoder(_WithOptions, CarteRows):
    """``get_model("carte_encoder")``; options are those of Karat's CARTE, in either spelling."""

    named = ("task", "random_state")

    def __init__(
        self, task: str = "regression", random_state: int | None = None, **options: Any
    ) -> None:
        checked = carte_encoder(task, random_state, **options)
        super().__init__(task, checked.options, random_state=random_state)
