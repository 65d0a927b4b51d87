"""Help texts and invalid options of all commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import warnings

import pytest

import karat
from karat.cli import options
from karat.cli.app import karat as group
from karat.cli.options import Printed
from karat.reporting import terminal


@pytest.mark.parametrize("verb", [None, *group.commands])
def test_every_help_has_an_example(cli, verb):
    result = cli(*([verb] if verb else []), "--help")
    assert result.code == 0
    assert re.search(rf"Examples?:\n +karat {verb}" if verb else "karat run", result.out)


@pytest.mark.parametrize("verb", sorted(group.commands))
def test_summaries_of_commands_fit_their_line(verb):
    summary = group.commands[verb].get_short_help_str(80 - 6 - max(map(len, group.commands)) - 2)
    assert summary and not summary.endswith("...")


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["runn"], "runn"),
        (["run"], "SUITE"),
        (["run", "quickstart", "--only-fold", "x"], "integer"),
        (["run", "quickstart", "--sed", "1"], "--sed"),
        (["run", "quickstart", "--retry-failed"], "--resume"),
        (["list", "model"], "'model'"),
        (["leaderboard"], "RUN"),
        (["lint"], "--list"),
    ],
)
def test_invalid_usage(cli, arguments, word):
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert word in err


@pytest.fixture
def runs(two_classes, tmp_path, monkeypatch):
    """Make two runs that are large enough for a kept leaderboard."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(options, "FEWEST_BYTES", 1)
    monkeypatch.setattr(terminal, "MAX_JOBS", 1)
    karat.evaluate(["dummy", "onehot"], [two_classes("one"), two_classes("two")], output=tmp_path)
    return tmp_path


def _print(capsys, *words):
    group.main(["leaderboard", *map(str, words)], standalone_mode=False)
    return capsys.readouterr().out


def _kept(runs):
    return list((runs / "cache" / options.FOLDER).glob("*.txt"))


def test_the_second_leaderboard_is_the_first_and_is_not_computed(runs, capsys, monkeypatch):
    for words in ([runs], [runs, "--format", "markdown"], [runs, "--format", "csv"]):
        first = _print(capsys, *words)
        with monkeypatch.context() as patched:
            patched.setattr(terminal, "leaderboard", lambda *_, **__: pytest.fail("computed"))
            assert _print(capsys, *words) == first != ""
    assert len(_kept(runs)) == 3


def _record(runs):
    return sorted(runs.glob("*/jobs/*.json"))[0]


def _edit(runs):
    record = json.loads(_record(runs).read_text())
    record["views"][0]["scores"] = dict.fromkeys(record["views"][0]["scores"], 0.125)
    before = _record(runs).stat()
    _record(runs).write_text(json.dumps(record))
    # older than the newest record, as a copy from elsewhere
    os.utime(_record(runs), ns=(before.st_atime_ns, before.st_mtime_ns - 10**9))


def _touch(runs):
    os.utime(_record(runs), ns=(0, 1))


def _delete(runs):
    _record(runs).unlink()


def _add(runs):
    record = json.loads(_record(runs).read_text())
    record["fold"] = 99
    _record(runs).with_name(f"{record['task']}.99.json").write_text(json.dumps(record))


def _change_plan(runs):
    path = sorted(runs.glob("*/run.json"))[0]
    path.write_text(path.read_text().replace('"seed": 42', '"seed": 7'))


def _add_run(runs):
    folder = sorted(path.parent for path in runs.glob("*/run.json"))[0]
    shutil.copytree(folder, folder.with_name(f"{folder.name}-2"))


@pytest.mark.parametrize("change", [_edit, _touch, _delete, _add, _change_plan, _add_run])
def test_a_changed_run_is_read_again(runs, capsys, monkeypatch, change):
    _print(capsys, runs)
    change(runs)
    found = _print(capsys, runs)
    monkeypatch.setenv("KARAT_CACHE", str(runs / "other"))
    assert found == _print(capsys, runs)


def test_other_options_folders_and_terminals_have_their_own_output(runs, monkeypatch):
    folders = sorted(path.parent for path in runs.glob("*/run.json"))
    names = {Printed.of([runs], {}).file, Printed.of([runs], {"by": "task"}).file}
    names |= {Printed.of(folders, {}).file, Printed.of(folders[::-1], {}).file}
    names |= {Printed.of(folders[:1], {}).file}
    monkeypatch.setenv("COLUMNS", "57")
    names |= {Printed.of([runs], {}).file}
    assert len(names) == 6
    assert Printed.of([runs], {}).file == Printed.of([runs], {}).file


def test_a_leaderboard_of_few_jobs_or_with_a_warning_is_not_kept(runs, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "MAX_JOBS", 1000)  # stored predictions may be tested
    _print(capsys, runs)
    monkeypatch.setattr(terminal, "MAX_JOBS", 1)
    _print(capsys, runs, "--common")
    _record(runs).write_text("{")
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        _print(capsys, runs)
    assert not _kept(runs)


def test_only_the_newest_outputs_are_kept(runs, capsys, monkeypatch):
    monkeypatch.setattr(options, "MOST_FILES", 2)
    for number in range(4):
        monkeypatch.setenv("COLUMNS", str(80 + number))
        _print(capsys, runs)
    assert len(_kept(runs)) == 2


def test_a_look_up_loads_no_statistics(runs):
    code = (
        "import sys, pathlib; from karat.cli.options import Printed; "
        "Printed.of([pathlib.Path(sys.argv[1])], {}).show(); "
        "print('karat.analysis.leaderboard' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(runs)], capture_output=True, text=True)
    assert done.stdout.split() == ["False"]
