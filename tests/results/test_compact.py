"""The file of all records: equal to the records, never stale, and rebuilt when damaged."""

from __future__ import annotations

import json
import os

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.results import compact
from karat.results.compact import (
    Compact,
    CompactColumn,
    Listed,
    read_compact,
    stamp_records,
    write_compact,
)
from karat.results.load import FrozenRun
from karat.results.run import Run
from karat.results.stored_facts import check_record
from karat.results.tables import scores_table

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc\x00", max_size=3), inner)
    ),
    max_leaves=8,
)
VIEWS = st.lists(
    st.fixed_dictionaries(
        {
            "corruption": st.sampled_from(["", "noise"]),
            "severity": st.sampled_from([0.0, 0.2]),
            "scores": st.dictionaries(
                st.sampled_from(["acc", "auc"]), st.none() | st.floats(allow_nan=False)
            ),
        },
        optional={"draw": st.integers(0, 3)},
    ),
    max_size=3,
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {"epoch": st.integers(1, 3), "metric": st.just("acc"), "value": st.floats(0, 1)}
    ),
    max_size=2,
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "task": st.sampled_from(["a", "b"]),
            "model": st.just("m"),
            "repeat": st.integers(0, 1),
            "fold": st.integers(0, 3),
            "history": STEPS,
            "views": VIEWS,
        },
        optional={"more": VALUES, "seconds": st.floats(0, 9)},
    ),
    max_size=6,
)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_values_come_back_as_they_were(values):
    column = CompactColumn.of(values)
    assert repr([column[row] for row in range(len(values))]) == repr(values)
    assert repr(column.values) == repr(values)
    assert column.are_true().tolist() == [bool(value) for value in values]


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_many_values_of_few_forms_come_back_as_they_were(values):
    several = values * compact.FEWEST_ROWS
    column = CompactColumn.of(several)
    assert repr([column[row] for row in range(len(several))]) == repr(several)
    assert column.are_true().tolist() == [bool(value) for value in several]


@given(RECORDS)
def test_many_records_have_the_scores_of_the_files(records):
    several = records * compact.FEWEST_ROWS
    pd.testing.assert_frame_equal(
        Compact.of(several).scores(), scores_table(several), check_dtype=False
    )


@given(RECORDS)
def test_records_and_scores_are_those_of_the_files(records):
    made = Compact.of(records)
    assert [dict(record) for record in made.records] == records
    pd.testing.assert_frame_equal(made.scores(), scores_table(records), check_dtype=False)


@given(st.lists(VIEWS, min_size=1, max_size=5), st.floats(0, 1))
def test_the_coverage_of_the_first_view_needs_no_views(several, share):
    for views in several:
        for view in views[::2]:
            view["coverage"] = share
    expected = [views[0].get("coverage") if views else None for views in several]
    assert CompactColumn.of(several).coverages() == expected


@given(RECORDS)
def test_columns_have_a_value_of_every_record(records):
    expected = [record.get("seconds") for record in records]
    first = [record["views"][0].get("coverage") if record["views"] else None for record in records]
    for made in (Compact.of(records), Listed(records)):
        assert made.column("seconds") == expected
        assert made.coverage() == first
        assert made.rows_with("seconds") == [row for row, each in enumerate(expected) if each]


def test_one_pattern_serves_all_records_of_one_form():
    column = CompactColumn.of([[{"scores": {"acc": 0.5}}], [{"scores": {"acc": 0.7}}]])
    assert (column.codes.tolist(), column.numbers.tolist()) == ([0, 0], [0.5, 0.7])
    assert column.patterns == [[{"scores": {"acc": {"\x00": 0}}}]]


JOB = {
    **{
        "spec": "",
        "model": "m",
        "task": "t",
        "fold": 0,
        "repeat": 0,
        "seed": None,
        "metric": "acc",
    },
    **{"status": "ok", "info": "", "notes": [], "history": [], "utc": "", "seconds": 0.5},
    "views": [{"corruption": "", "severity": 0.0, "scores": {"acc": 0.5}}],
}


def test_columns_are_valid_if_all_their_records_are():
    assert Compact.of([JOB, {**JOB, "fold": 1}]).is_valid()


@pytest.mark.parametrize(
    ("key", "value"),
    [("task", ""), ("fold", -1), ("status", "new"), ("seconds", float("inf")), ("views", [{}])],
)
def test_columns_with_a_damaged_record_are_not_valid(key, value):
    damaged = {**JOB, key: value}
    assert check_record(damaged)
    assert not Compact.of([JOB, damaged, JOB]).is_valid()


@pytest.fixture
def run(two_classes, tmp_path, monkeypatch):
    """Make a run of four jobs that is large enough for a file."""
    monkeypatch.setattr(compact, "FEWEST_JOBS", 4)
    tasks = [two_classes("one"), two_classes("two")]
    (made,) = karat.evaluate(["dummy"], tasks, output=tmp_path)
    return Run.open(made.folder)


def test_a_finished_run_has_the_file_and_it_is_read(run, monkeypatch):
    expected, scores = run.records(), run.scores()
    monkeypatch.setattr(Run, "read_records", lambda self: pytest.fail("the records were read"))
    frozen = FrozenRun(run.folder)
    assert [dict(record) for record in frozen.records()] == expected
    pd.testing.assert_frame_equal(frozen.scores(), scores)


def _change(run):
    path = sorted((run.folder / "jobs").glob("*.json"))[0]
    record = json.loads(path.read_text())
    record["views"][0]["scores"]["acc"] = 0.125
    path.write_text(json.dumps(record))


def _delete(run):
    sorted((run.folder / "jobs").glob("*.json"))[0].unlink()


def _touch(run):
    os.utime(sorted((run.folder / "jobs").glob("*.json"))[0], ns=(0, 10**19))


def _file(run):
    return run.folder / "scores" / compact.FILE


def _damage(run):
    _file(run).write_bytes(_file(run).read_bytes()[:-9])


def _flip(run):
    content = bytearray(_file(run).read_bytes())
    content[-20] ^= 1
    _file(run).write_bytes(content)


def _edit(run, **changes):
    head, _, body = _file(run).read_bytes().partition(b"\n")
    content = {**json.loads(head), **changes}
    _file(run).write_bytes(json.dumps(content).encode() + b"\n" + body)


def _empty(run):
    _edit(run, groups=[{"places": [0, "|u1", 4], "columns": {}}] * 2)


def _short(run):
    head, _, _ = _file(run).read_bytes().partition(b"\n")
    (group, *_) = json.loads(head)["groups"]
    patterns, codes, numbers = group["columns"]["views"]
    group["columns"]["views"] = [patterns, codes, [*numbers[:2], numbers[2] - 1]]
    _edit(run, groups=[group])


def _objects(run):
    head, _, _ = _file(run).read_bytes().partition(b"\n")
    (group, *_) = json.loads(head)["groups"]
    _edit(run, groups=[{**group, "places": [0, "|O8", 4]}])


def _older(run):
    _edit(run, version=1)


def _text(run):
    _file(run).write_text("no table")


CHANGES = (_change, _delete, _touch, _damage, _flip, _empty, _short, _objects, _older, _text)


@pytest.mark.parametrize("change", CHANGES)
def test_a_stale_or_damaged_file_is_not_used_and_made_again(run, change):
    change(run)
    assert read_compact(run.folder) is None
    expected = Run.open(run.folder).records()
    assert FrozenRun(run.folder).records() == expected
    found = read_compact(run.folder)
    if change is _delete:  # three jobs are too few
        assert found is None
    else:
        assert [dict(record) for record in found.records] == expected


def test_the_same_records_make_the_same_bytes(run):
    before = _file(run).read_bytes()
    _file(run).unlink()
    FrozenRun(run.folder).records()
    assert _file(run).read_bytes() == before


def test_deeply_nested_records_are_read_from_their_files(run):
    path = sorted((run.folder / "jobs").glob("*.json"))[0]
    text = path.read_text().rstrip().removesuffix("}")
    path.write_text(text + ', "more": ' + "[" * 600 + "]" * 600 + "}")
    assert len(FrozenRun(run.folder).records()) == 4
    found = read_compact(run.folder)  # Python 3.13 writes such records
    assert found is None or len(found) == 4


def test_a_small_run_has_no_file(two_classes, tmp_path):
    (made,) = karat.evaluate(["dummy"], [two_classes()], output=tmp_path)
    assert not (made.folder / "scores" / compact.FILE).exists()


def test_records_that_were_added_while_reading_are_not_lost(run):
    stamp = stamp_records(run.folder)
    write_compact(run.folder, [stamp[0] - 1, *stamp[1:]], Compact.of(run.records()))
    assert len(FrozenRun(run.folder).records()) == 4


def test_the_leaderboard_is_the_same_with_and_without_the_file(run):
    with_file = karat.leaderboard(run.folder)
    (run.folder / "scores" / compact.FILE).unlink()
    without = karat.leaderboard(run.folder)
    pd.testing.assert_frame_equal(pd.DataFrame(with_file), pd.DataFrame(without))


@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_joined_runs_have_the_scores_of_each(runs):
    keys = ("task", "model", "repeat", "fold", "history", "views")
    parts = [Compact.of(records).renamed("task", str.upper) for records in runs if records]
    if not parts:
        return
    joined, place = Compact.joined(parts, keys).placed_scores()
    every = [{**record, "task": record["task"].upper()} for records in runs for record in records]
    pd.testing.assert_frame_equal(joined, scores_table(every), check_dtype=False)
    assert (place[1:] >= place[:-1]).all()
    assert [every[at]["fold"] for at in place] == joined["fold"].tolist()


def test_a_file_of_an_earlier_version_without_the_number_of_records_is_read(run):
    path = run.folder / "scores" / compact.FILE
    head, _, rest = path.read_bytes().partition(b"\n")
    content = json.loads(head)
    del content["count"]
    path.write_bytes(json.dumps(content).encode() + b"\n" + rest)
    assert len(read_compact(run.folder)) == 4
