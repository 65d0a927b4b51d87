"""The reader "table": every row is an item, one column is the truth."""

from __future__ import annotations

from karat.data.frames import OPTIONS, need_columns, need_target, read_frame, read_parts
from karat.data.load import DataSpec, Files
from karat.data.texts import read_columns
from karat.dataset import Dataset
from karat.registry import reader


@reader("table")
def read_table(files: Files, spec: DataSpec) -> Dataset:
    """Return the rows of a file (or of a train and a test file) as a data set."""
    if spec.modality in ("text", "entity"):
        return read_columns(files, spec)
    spec.check_options(*OPTIONS)
    target = need_target(spec)
    frame, spec = read_parts(files, spec, lambda path: read_frame(path, spec))
    need_columns(frame, [target, *spec.fields], spec.name)
    kept = {target, spec.group, spec.part, *spec.fields}
    unused = [c for c in frame.columns if c not in kept] if spec.fields else []
    return Dataset.from_table(
        frame,
        target,
        name=spec.name,
        kind=spec.kind,
        group=spec.group,
        drop=list(dict.fromkeys([*spec.drop, *unused])),
        part=spec.part,
        about=spec.about,
    )
