"""``karat leaderboard``: columns, missing scores and invalid options.

``karat rescore``, ``karat import`` and ``karat export``: output and exit codes.
"""

from __future__ import annotations

import io
import json
import shutil

import pandas as pd
import pytest

import karat
from karat.errors import DataError, DefinitionError

from ..cluster_data import run_users, users_table
from ..score_data import write_run


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    output = tmp_path_factory.mktemp("runs")
    models = ["onehot", "dummy", "random"]
    karat.evaluate(
        models, ["diabetes", "wine-clusters"], only=karat.Only(folds=[0, 1]), output=output
    )
    return output


def frame(text):
    return pd.read_csv(io.StringIO(text), index_col="model")


def test_columns_are_those_of_python(results, cli):
    options = ["--columns", "elo:dummy, borda,pareto", "--sort", "elo", "--format", "csv"]
    code, out, err = cli("leaderboard", results, *options)
    assert (code, err) == (0, "")
    board = karat.leaderboard(results, columns=["elo:dummy", "borda", "pareto"], sort="elo")
    assert list(frame(out).columns) == list(board.columns)
    read = frame(out).astype({"tie": object}).fillna({"tie": ""})
    pd.testing.assert_frame_equal(read, pd.DataFrame(board), check_dtype=False)


def test_ratings_and_pareto_front(results, cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = cli("leaderboard", results, "--columns", "elo,borda,pareto,costs")
    assert code == 0
    board = karat.leaderboard(results, columns=["pareto"])
    assert f"{', '.join(board.index[board['pareto']])}." in out
    expected = "model rank tie difference, 95 % borda elo 95 % pareto failed n/a time memory dims"
    assert out.splitlines()[0].split() == expected.split()


def test_common_is_exclude(results, cli):
    shape = ("--format", "csv")
    outs = [
        cli("leaderboard", results, *options, *shape).out
        for options in (
            [],
            ["--common"],
            ["--missing", "exclude"],
            ["--missing", "common"],
            ["--missing", "penalize"],
        )
    ]
    assert outs[0] != outs[4]
    assert outs[1] == outs[2] == outs[3]
    assert outs[0] != outs[1]
    code, out, err = cli("leaderboard", results, "--common", "--missing", "penalize")
    assert code == 2 and "--common" in err and not out


TACO = "dataset,task,corruption,severity,model,metric,value\n"
ROWS = TACO + "adult,classification,clean,0.0,rf,AUC,0.75\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> karat.Run:
    output = tmp_path_factory.mktemp("runs")
    (run,) = karat.evaluate("dummy", ["diabetes"], only=karat.Only(folds=[0, 1]), output=output)
    return run


def test_rescore_without_changes(made, cli):
    before = sorted(made.folder.parent.rglob("*"))
    code, out, err = cli("rescore", made.folder.parent)
    metrics = len(made.about["tasks"][0]["metrics"])
    assert code == 0 and not err
    assert out.startswith(f" {made.folder.name}: {2 * metrics} scores, 0 differ")
    assert sorted(made.folder.parent.rglob("*")) == before


def test_rescore_adds_a_metric(made, cli, tmp_path):
    code, out, err = cli("rescore", made.folder, "--metric", "msle", "-o", tmp_path / "new")
    assert code == 0 and not err
    (new,) = (tmp_path / "new").iterdir()
    mean = karat.Run.open(new).scores().query("metric == 'msle'")["value"].mean()
    assert f" diabetes: msle {mean:.6g} over 2 folds\n" in out and f" written: {new}\n" in out


def test_rescore_reports_damage_and_continues(made, cli, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(made.folder, tmp_path / "in" / f"{name}.{made.folder.name}")
    path = tmp_path / "in" / f"a.{made.folder.name}" / "predictions/diabetes/0/predictions.csv"
    path.write_text(path.read_text().replace("\n", "\nwrong,", 1))
    code, out, err = cli("rescore", tmp_path / "in", "-o", tmp_path / "out")
    assert code == 1
    assert f"{path}, line 2" in " ".join(out.split())
    assert out.count("0 differ") == 1 and "1 file could not be used" in " ".join(out.split())
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert "Traceback" not in err


def test_rescore_takes_metrics_of_a_file(made, cli, tmp_path, clean_registry):
    file = tmp_path / "mine.py"
    file.write_text(
        "import karat\n\n\n@karat.metric('farthest_cli', higher_is_better=False, "
        "range=(0, float('inf')), needs=('numbers',))\ndef farthest(p):\n"
        '    """Return the largest error."""\n    return abs(p.predictions - p.target).max()\n'
    )
    code, _, err = cli("rescore", made.folder, "--metric", "farthest_cli")
    assert code == 2 and '"farthest_cli"' in err
    code, out, err = cli(
        "rescore", made.folder, "--metric", "farthest_cli", "--define", file, "-o", tmp_path / "o"
    )
    assert code == 0 and "diabetes: farthest_cli" in out
    # the metric stays usable without its definition
    board = karat.leaderboard(tmp_path / "o", metrics={"diabetes": "farthest_cli"})
    answers = [made.predictions("diabetes", fold) for fold in (0, 1)]
    mean = sum(abs(p.predictions - p.target).max() for p in answers) / 2
    assert board["diabetes"].iloc[0] == pytest.approx(mean)


def test_import_prints_the_folders(cli, tmp_path):
    (tmp_path / "m.csv").write_text(ROWS)
    code, out, err = cli("import", tmp_path / "m.csv", "-o", tmp_path / "out")
    (folder,) = (tmp_path / "out").iterdir()
    assert (code, out, err) == (0, f"{folder}\n", "")
    code, out, _ = cli("leaderboard", tmp_path / "out", "--format", "json")
    assert code == 0 and json.loads(out)[0]["adult"] == 0.75
    code, _, err = cli("rescore", tmp_path / "out")
    assert code == 1 and "m.csv" in err and "predictions" in err
    code, out, _ = cli("import", tmp_path / "m.csv", "-o", tmp_path / "out")
    assert code == 0 and len(list((tmp_path / "out").iterdir())) == 1


def test_import_of_unreadable_files(cli, tmp_path):
    (tmp_path / "m.csv").write_text(ROWS)
    (tmp_path / "x.csv").write_text("a,b\n")
    files = (tmp_path / "m.csv", tmp_path / "x.csv")
    code, _, err = cli("import", *files, "-o", tmp_path / "out")
    assert code == 1 and "x.csv" in err
    code, _, err = cli("import", tmp_path / "x.csv", "-o", tmp_path / "none")
    assert code == 2 and "x.csv" in err and not (tmp_path / "none").exists()
    code, _, err = cli("import", tmp_path / "m.csv", "--as", "tacco", "-o", tmp_path / "none")
    assert code == 2 and '"taco"' in err
    code, _, err = cli("import", tmp_path / "nowhere.csv", "-o", tmp_path / "none")
    assert code == 2 and "nowhere.csv" in err and "Traceback" not in err


def test_verify_accepts_and_refuses(results, cli, tmp_path):
    (run,) = karat.evaluate(
        "onehot",
        "quickstart",
        only=karat.Only("diabetes", folds=[0]),
        output=karat.Output(tmp_path, items=False),
    )
    code, out, err = cli("verify", tmp_path, "--jobs", "1", "--seed", "5", "--against", results)
    assert (code, err) == (0, "") and "Verified." in out and "1 job, sample seed 5" in out
    path = run.folder / "jobs" / "diabetes.0.json"
    path.write_text(path.read_text().replace('"seconds": ', '"seconds": -'))
    code, out, _ = cli("verify", run.folder, "--jobs", "0", "--format", "json")
    (found,) = json.loads(out)
    assert code == 1 and not found["verified"]
    assert {reason["check"] for reason in found["reasons"]} == {"timing"}
    code, out, _ = cli("verify", run.folder, "--jobs", "0", "--format", "markdown")
    assert code == 1 and out.startswith(f"### {run.folder.name}: refused\n\n- timing: diabetes")


@pytest.mark.parametrize(
    "arguments",
    [["nowhere"], ["{}", "--jobs", "-1"], ["{}", "--suite", "quickstar"], ["{}", "-m", "onehot"]],
)
def test_verify_bad_input(results, cli, arguments):
    code, out, err = cli("verify", *(each.format(results) for each in arguments))
    assert code == 2 and out == "" and err


def test_site(results, cli, tmp_path):
    code, out, _ = cli("site", results, "-o", tmp_path / "site", "--title", "<b>")
    assert code == 0 and str(tmp_path / "site" / "index.html") in out
    assert "&lt;b&gt;" in (tmp_path / "site" / "index.html").read_text()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("x")
    code, _, err = cli("site", results, "-o", tmp_path / "full")
    assert code == 2 and "other files" in err


def test_export_model_cards(results, cli, tmp_path):
    code, out, _ = cli("export", results, "--as", "model-card", "-o", tmp_path)
    assert code == 0 and len(out.split()) == 3
    assert "model-index:" in (tmp_path / "onehot" / "README.md").read_text()


def test_trackers_are_checked_before_any_job(cli, tmp_path, monkeypatch):
    from karat.ext.publish import tracking

    command = ("run", "quickstart", "-m", "dummy", "-t", "diabetes", "-o", tmp_path / "out")
    code, _, err = cli(*command, "--track", "mlfow")
    assert code == 2 and "mlflow" in err
    monkeypatch.setattr(tracking.importlib.util, "find_spec", lambda name: None)
    code, _, err = cli(*command, "--track", "trackio")
    assert code == 2 and 'pip install "karat[trackio]"' in err
    assert not (tmp_path / "out").exists()


def test_a_tracker_that_refuses_loses_nothing(cli, tmp_path, monkeypatch):
    from karat.ext.publish import tracking

    def refuse(project, sent):
        raise OSError("no route")

    monkeypatch.setattr(tracking, "check_tracker", lambda name: None)
    monkeypatch.setitem(tracking._CLIENTS, "wandb", refuse)
    command = ("run", "quickstart", "-m", "dummy", "-t", "diabetes", "--only-fold", "0", "-w", "0")
    code, out, err = cli(*command, "-o", tmp_path / "out", "--track", "wandb")
    assert code == 1 and "no route" in err and "dummy" in out
    (run,) = karat.open_runs(tmp_path / "out")
    assert [record["status"] for record in run.records()] == ["ok"]


def test_a_note_about_a_damaged_record_is_printed_once(results, tmp_path, python):
    for name in ("old", "new"):
        shutil.copytree(next(results.glob("onehot.*")), tmp_path / name / "run")
    (tmp_path / "new" / "run" / "jobs" / "diabetes.1.json").write_text("{")
    found = python("-m", "karat", "gate", tmp_path / "new", "--against", tmp_path / "old")
    assert found.stderr.count("damaged") == 1


def test_the_next_task_needs_19_tasks(results, cli, tmp_path):
    code, out, err = cli("leaderboard", results, "--next")
    assert (code, out) == (2, "")
    assert err.count("error: ") == 1 and len(err.splitlines()) == 1
    assert "needs at least 19 tasks, and there are 2 tasks" in err
    write_run(tmp_path / "five", "a", {f"t{t}": [0.9] for t in range(5)})
    write_run(tmp_path / "five", "b", {f"t{t}": [0.8] for t in range(5)})
    code, _, err = cli("leaderboard", tmp_path / "five", "--next")
    assert code == 2 and "there are 5 tasks" in err and len(err.splitlines()) == 1
    with pytest.raises(DataError, match="there are 5 tasks"):
        karat.next_task(tmp_path / "five")
    for model, score in (("a", 0.9), ("b", 0.8)):
        write_run(tmp_path / "many", model, {f"t{t}": [score] for t in range(19)})
    code, out, err = cli("leaderboard", tmp_path / "many", "--next", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == karat.next_task(tmp_path / "many").to_dict()
    code, _, err = cli("leaderboard", tmp_path / "many", "--next", "--by", "task")
    assert code == 2 and "--next conflicts with --by" in err


# -- clusters of items ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    folder = tmp_path_factory.mktemp("users")
    run_users(folder)
    return folder


def test_a_cluster_column_is_the_unit_of_compare_and_leaderboard(users, cli):
    both = ("-a", "a", "-b", "b", "--format", "json")
    rows = json.loads(cli("compare", users, *both).out)
    groups = json.loads(cli("compare", users, *both, "--cluster", "user").out)
    assert rows["tasks"][0]["p"] < 0.001 and rows["tasks"][0]["clusters"] == 0
    assert groups["tasks"][0]["p"] > 0.05 and groups["tasks"][0]["clusters"] == 24
    assert any("Items are assumed independent" in note for note in rows["notes"])
    assert 'The unit is the cluster "user": 24 clusters of 240 items.' in groups["notes"]
    for options, unit in (([], "assumed independent"), (["--cluster", "user"], "24 clusters of")):
        every = json.loads(cli("compare", users, "--format", "json", *options).out)
        assert any(unit in note for note in every["notes"])
    letters = [
        frame(cli("leaderboard", users, "--format", "csv", *options).out)["tie"].tolist()
        for options in ([], ["--cluster", "user"])
    ]
    assert letters == [["a", "b"], ["a", "a"]]


def test_a_gate_says_what_its_unit_is(users, cli):
    a, b = (next(users.glob(f"{name}.*")) for name in "ab")
    plain = cli("gate", b, "--against", a)
    assert plain.code == 1 and "Items are assumed independent" in " ".join(plain.out.split())
    found = cli("gate", b, "--against", a, "--cluster", "user")
    assert found.code == 3 and "24 clusters of 240 items" in " ".join(found.out.split())
    rates = cli("gate", "--calibrate", a, "--cluster", "user", "--format", "json")
    assert rates.code == 0 and json.loads(rates.out)["cluster"] == "user"
    other = cli("gate", b, "--against", a, "--format", "json")
    assert any("with --cluster user" in note for note in json.loads(other.out)["notes"])


@pytest.mark.parametrize("column", ["usr", "same"])
@pytest.mark.parametrize(
    "command",
    [
        ["leaderboard"],
        ["compare"],
        ["compare", "-a", "a", "-b", "b"],
        ["compare", "-a", "a", "-b", "b", "--by", "auto"],
        ["cheapest", "--cost", "seconds"],
        ["report"],
        ["gate"],
        ["gate", "--calibrate"],
        ["same"],
    ],
    ids=" ".join,
)
def test_a_wrong_cluster_column_is_one_clear_message(users, cli, command, column, tmp_path):
    a, b = (next(users.glob(f"{name}.*")) for name in "ab")
    rest = {"gate": [b, "--against", a], "same": [a, b], "report": [users, "-o", tmp_path / "r"]}
    where = [a] if command[-1] == "--calibrate" else rest.get(command[0], [users])
    code, out, err = cli(*command, *where, "--cluster", column)
    assert (code, out) == (2, "") and len(err.strip().splitlines()) == 1
    wanted = 'no column "usr" is kept' if column == "usr" else '"same" has one value in users'
    assert wanted in err


def test_bad_input_is_one_message_and_changes_no_finished_run(cli, tmp_path):
    table, folder = tmp_path / "users.csv", tmp_path / "results"
    users_table().drop(columns="part").to_csv(table, index=False)
    run = ("run", table, "--target", "y", "-m", "dummy", "-w", "0", "-q", "-o", folder)
    assert cli(*run, "--only-fold", "0").code == 0
    before = contents(folder)
    for options, message in {
        ("--group", "nobody"): '"nobody" is not a column',
        ("--group", "same"): "1 group is too few for 5 folds",
        ("--seeds", "0"): "seeds must be an integer from 1 to 1000, got 0",
    }.items():
        for more in ((), ("--resume",)):
            code, out, err = cli(*run, *options, *more)
            assert (code, out) == (2, "") and len(err.splitlines()) == 1 and message in err
    for options in (("--next",), ("--cluster", "same"), ("--cluster", "nobody")):
        code, out, err = cli("leaderboard", folder, *options)
        assert (code, out) == (2, "") and len(err.splitlines()) == 1
    assert contents(folder) == before and len(before) > 3


def contents(folder):
    """Return the bytes of all files below a folder."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_bad_input_in_python(users, tmp_path):
    data = karat.Dataset.from_table(users_table().drop(columns="part"), "y", name="users")
    task = karat.Task("users", data, metrics=["acc"])
    with pytest.raises(DefinitionError, match="seeds must be an integer from 1 to 1000, got 0"):
        karat.evaluate(karat.Variants({"dummy": "dummy"}, seeds=0), task, output=tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(DataError, match='"nobody" is not a column'):
        karat.Dataset.from_table(users_table(), "y", name="users", group="nobody")
    a, b = (next(users.glob(f"{name}.*")) for name in "ab")
    for ask in (
        lambda column: karat.leaderboard(users, cluster=column),
        lambda column: karat.compare(users, "a", "b", cluster=column),
        lambda column: karat.compare_slices(users, "a", "b", cluster=column),
        lambda column: karat.cheapest(users, "seconds", cluster=column),
        lambda column: karat.gate(b, a, cluster=column),
    ):
        with pytest.raises(DefinitionError, match='"same" has one value in users'):
            ask("same")
        with pytest.raises(DefinitionError, match='no column "nobody" is kept'):
            ask("nobody")


def test_a_cluster_column_does_not_fit_every_question(users, cli):
    run = next(users.glob("a.*"))
    code, _, err = cli("compare", "--history", run, "--cluster", "user")
    assert code == 2 and "--cluster cannot be used with --history" in err
    code, _, err = cli("compare", users, "-a", "a", "-b", "b", "--items", "--cluster", "user")
    assert code == 2 and "--cluster cannot be used" in err
