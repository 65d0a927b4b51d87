"""The reader "table": every row is an item, one column is the target."""

from __future__ import annotations

from karat.data.frames import OPTIONS, read_frame, read_parts
from karat.data.load import DataSpec, Files
from karat.data.questions import ask_rows, need_target
from karat.data.texts import read_columns
from karat.dataset import Dataset
from karat.registry import reader


@reader("table")
def read_table(files: Files, spec: DataSpec) -> Dataset:
    """Return the rows of a file (or of a train and a test file) as a dataset."""
    if spec.modality in ("text", "entity"):
        return read_columns(files, spec)
    spec.check_options(*OPTIONS)
    need_target(spec)
    return ask_rows(*read_parts(files, spec, lambda path: read_frame(path, spec)))
