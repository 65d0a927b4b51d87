"""Words as numbers in alphabetical order."""

from __future__ import annotations

from typing import Any

from karat.models.model import Target
from karat.models.tables.typed_columns import ColumnEncoder, TypedColumns, scaled


def ordinal_words() -> Any:
    """Return a transformer of words: scaled ordinal codes, −1 for an unseen word."""
    from sklearn.preprocessing import OrdinalEncoder

    return scaled(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))


class OrdinalTable(ColumnEncoder):
    """Number the words of each column in alphabetical order, −1 for an unseen one, and scale."""

    def _columns(self, y: Target) -> TypedColumns:
        return TypedColumns(ordinal_words())
