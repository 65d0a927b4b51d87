"""Every kind of wrong input: one clear line each, and nothing runs."""

import sys
import textwrap
from pathlib import Path

import pytest

import karat

GOOD = "x,y\n" + "".join(f"{i},{'low' if i < 10 else 'high'}\n" for i in range(20))
TASK = """
tasks:
  t:
    extends: classification
    dataset: {{path: data.csv, target: {target}, kind: classification}}
    metrics: [acc]
"""


@pytest.fixture
def ask(cli, tmp_path, monkeypatch, clean_registry):
    """Run a task of a YAML text and a CSV text; return exit code and messages."""
    monkeypatch.chdir(tmp_path)

    def asked(yaml, data=GOOD, suite="t", model="onehot", more=()):
        Path("my.yaml").write_text(textwrap.dedent(yaml))
        Path("data.csv").write_text(data)
        done = cli("run", suite, "--define", "my.yaml", "-m", model, "-w", 1, *more)
        assert "Traceback" not in done.err
        assert done.out == "" or done.code != 2
        if done.code == 2:
            assert not Path("results").exists()
        return done.code, done.err.splitlines()

    return asked


def refused(asked):
    code, lines = asked
    assert code == 2
    return [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]


def test_correct_input_runs(ask):
    assert ask(TASK.format(target="y"))[0] == 0


@pytest.mark.parametrize(
    "changes, word",
    [
        ({"suite": "tt"}, 'Did you mean "t"?'),
        ({"model": "onehott"}, 'Did you mean "onehot"?'),
        ({"model": "no.such:Thing"}, "ModuleNotFoundError"),
        ({"model": "nowhere.txt"}, "nowhere.txt"),
        ({"more": ["-t", "u"]}, '"u"'),
        ({"more": ["--only-fold", "5"]}, "5"),
        ({"more": ["--only-fold", "-1"]}, "-1"),
        ({"more": ["-c", "tset"]}, 'Did you mean "test"?'),
        ({"more": ["-w", "-1"]}, "workers"),
        ({"more": ["--seed", "-5"]}, "seed"),
        ({"more": ["--max-rows", "1"]}, "max_rows"),
        ({"more": ["--define", "nowhere.yaml"]}, "nowhere.yaml"),
    ],
)
def test_unknown_names_and_values(ask, changes, word):
    (message,) = refused(ask(TASK.format(target="y"), **changes))
    assert word in message


@pytest.mark.parametrize(
    "line, word",
    [
        ("metrics: [acc, acurracy]", '"acurracy"'),
        ('metrics: ["hits@0"]', "hits@0"),
        ("probe: {use: trained, head: logistic-regresion}", 'Did you mean "logistic-regression"?'),
        ("probe: {use: trained, head: {use: knn, k: 3}}", '"k"'),
        ("probe: {use: traind}", 'Did you mean "trained"?'),
        ("probe: {use: trained, compose: sum}", '"sum"'),
        ("split: {use: kfolds}", 'Did you mean "kfold"?'),
        ("split: {use: kfold, flods: 3}", 'Did you mean "folds"?'),
        ("split: {use: kfold, folds: 1}", "folds"),
        ("corruptions: {noise_gausian: [0.1]}", '"noise_gausian"'),
    ],
)
def test_unknown_parts_of_a_task(ask, line, word):
    yaml = TASK.format(target="y")
    key = line.partition(":")[0]
    lines = [each for each in yaml.splitlines() if not each.strip().startswith(f"{key}:")]
    (message,) = refused(ask("\n".join([*lines, f"    {line}"])))
    assert word in message


def test_all_mistakes_are_reported_together(ask, cli):
    code, lines = ask(TASK.format(target="y"), suite="quikstart", model="onehott")
    assert code == 2
    assert len(lines) == 3
    assert '"quickstart"' in lines[0] and '"onehot"' in lines[1] and "2" in lines[2]
    done = cli("run", "quickstart", "-m", "onehott", "-t", "pengins", "-c", "smok")
    assert done.code == 2
    lines = done.err.splitlines()
    assert len(lines) == 4 and "3" in lines[-1]
    for line, name in zip(lines, ("pengins", "onehott", "smok"), strict=False):
        assert f'"{name}"' in line


@pytest.mark.parametrize(
    "yaml, word",
    [
        ("tasks:\n  t: {extends: classification, dataset: iris, metrcs: [acc]}\n", '"metrics"'),
        ("tasks:\n\tt: {}\n", "my.yaml:2: "),
        ("suites:\n  t: {tasks: [nothing]}\n", '"nothing"'),
    ],
)
def test_mistakes_in_yaml_are_reported_with_their_line(ask, yaml, word):
    (message,) = refused(ask(yaml))
    assert message.startswith("my.yaml:") and word in message


@pytest.mark.parametrize(
    "data, word",
    [
        ("x,z\n1,a\n2,b\n", 'my.yaml:5: tasks.t.dataset.target: "y"'),
        ("x,y\n", "data.csv"),
        ("", "empty"),
        ("x,y\n1,a\n2,a\n3,a\n", '"a"'),
        ("x,y\n1,a\n2,\n3,b\n", "1 of 3 rows"),
        ("x,x,y\n1,2,a\n3,4,b\n", 'column "x"'),
        ("y\na\nb\n", 'target "y"'),
        ("x,y\n1,a\n2,b\n", "5 folds"),
    ],
    ids=["no target", "no rows", "nothing", "one class", "NaN", "twice", "no items", "too small"],
)
def test_tables_that_cannot_be_used(ask, data, word):
    (message,) = refused(ask(TASK.format(target="y"), data))
    assert word in message and len(message) < 400


def test_a_wrong_column_or_file(ask):
    (message,) = refused(ask(TASK.format(target="yy")))
    assert message.startswith('my.yaml:5: tasks.t.dataset.target: "yy"')
    assert 'Did you mean "y"?' in message and "x, y" in message
    (message,) = refused(ask(TASK.format(target="y").replace("data.csv", "dta.csv")))
    assert "dta.csv" in message and 'Did you mean "data.csv"?' in message
    assert message.startswith("my.yaml:5: tasks.t.dataset")


#: what wrong encoders return, and the reason that is reported
ENCODERS = {
    "few": ("np.zeros((len(items) - 1, 2))", "rows"),
    "hole": ("np.where(np.eye(len(items), 2) > 0, np.nan, 1.0)", "NaN"),
    "text": ("[['a'] for _ in range(len(items))]", "numbers"),
    "flat": ("np.zeros(len(items))", "matrix"),
    "infinite": ("np.full((len(items), 1), np.inf)", "infinite"),
    "width": ("np.zeros((len(items), len(items)))", "dimensions"),
    "raises": ("1 / 0", "ZeroDivisionError: division by zero"),
    "exits": ("sys.exit(5)", "SystemExit: 5"),
}


def write_encoder(name: str, stateless: bool = False) -> str:
    """Write the module of a wrong encoder; return the name of its class."""
    fit = "" if stateless else "    def fit(self, items, y=None): return self\n"
    Path("broken_encoder.py").write_text(
        f"import sys\nimport numpy as np\nclass Broken:\n{fit}"
        f"    def transform(self, items): return {ENCODERS[name][0]}\n"
    )
    sys.modules.pop("broken_encoder", None)
    return "broken_encoder:Broken"


def assert_failed(lines, word):
    """Two jobs failed for the same reason, which is written out once."""
    failures = [line for line in lines if "✗" in line]
    assert len(failures) == 2
    assert word in failures[0] and (word in failures[1] or "1 more job" in failures[1])


#: a stateless encoder embeds all items in one call, so its vectors have one width
CASES = [(name, stateless) for name in ENCODERS for stateless in (True, False)]
CASES.remove(("width", True))


@pytest.mark.parametrize("name, stateless", CASES)
def test_a_broken_encoder_is_a_failed_row_and_the_others_run(ask, name, stateless):
    model = write_encoder(name, stateless)
    code, lines = ask(TASK.format(target="y"), model=model, more=["-m", "onehot", "-c", "test"])
    assert code == 1
    assert_failed(lines, ENCODERS[name][1])
    for path in Path("results").glob("Broken.*"):
        run = karat.Run.open(path)
        assert run.results()["status"].tolist() == ["failed", "failed"]
        for fold in (0, 1):
            assert "Traceback" in (path / "logs" / "t" / f"{fold}.txt").read_text()
    (onehot,) = (karat.Run.open(path) for path in Path("results").glob("onehot.*"))
    assert onehot.results()["status"].tolist() == ["ok", "ok"]


SEARCHES = {
    "ranking": "extends: ranking",
    "supervised-ranking": "extends: supervised-ranking",
    "row-search": "extends: row-search",
    "text-search": "extends: text-search\n    ask: {conditions: [numeric], most: 0.2}",
}


def searching(kind: str, **dataset: str) -> str:
    """Return the YAML of a task that ranks, about the table of these tests."""
    given = {"path": "data.csv", "target": "y", "kind": "classification", **dataset}
    about = ", ".join(f"{key}: {value}" for key, value in given.items() if value)
    return f"tasks:\n  t:\n    {SEARCHES[kind]}\n    dataset: {{{about}}}\n"


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_that_is_right_runs(ask, kind):
    model = "tfidf" if kind == "text-search" else "onehot"
    assert ask(searching(kind), model=model)[0] == 0
    (run,) = map(karat.Run.open, Path("results").iterdir())
    results = run.results()
    assert results["status"].tolist() == ["ok"] * 5
    assert results["result"].between(0, 1).all()


FAILING = [(kind, name) for kind in SEARCHES for name in ("few", "hole", "flat", "infinite")]
FAILING += [("supervised-ranking", "width"), ("row-search", "width")]


@pytest.mark.parametrize("kind, name", FAILING)
def test_a_broken_encoder_fails_in_searches_too(ask, kind, name):
    code, lines = ask(searching(kind), model=write_encoder(name), more=["-c", "test"])
    assert code == 1
    assert_failed(lines, ENCODERS[name][1])
    (run,) = map(karat.Run.open, Path("results").iterdir())
    assert run.results()["status"].tolist() == ["failed", "failed"]


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(
    "given, word",
    [
        ({"target": "yy"}, 'Did you mean "y"?'),
        ({"target": ""}, "target"),
        ({"drop": "[z]"}, '"z"'),
        ({"group": "z"}, '"z"'),
        ({"part": "z"}, '"z"'),
        ({"fields": "[z]"}, '"z"'),
    ],
    ids=["target", "no target", "drop", "group", "part", "fields"],
)
def test_columns_that_are_not_there(ask, kind, given, word):
    (message,) = refused(ask(searching(kind, **given)))
    assert word in message and message.startswith("my.yaml:")


@pytest.mark.parametrize(
    "line, word",
    [
        ("ask: {use: partial-row}", '"partial-rows"'),
        ("ask: {keeps: 0.5}", 'Did you mean "keep"?'),
        ("ask: {keep: 0}", "keep"),
        ("ask: {queries: 0.5}", "queries"),
        ("ask: 5", "tasks.t.ask"),
        ("aks: {keep: 1}", 'Did you mean "ask"?'),
        ("probe: {use: nearest, queries: inside}", '"inside"'),
        ("probe: {use: same-class, queries: 0}", "queries"),
        ("split: {use: all, share: 2}", "share"),
        ("split: {use: holdout, test: 0.5, test_rows: 3}", "test_rows"),
        ("metrics: [acc]", "acc"),
        ('metrics: ["mrr@0"]', "mrr@0"),
    ],
)
def test_mistakes_in_a_search(ask, line, word):
    (message,) = refused(ask(searching("row-search") + f"    {line}\n"))
    assert word in message


@pytest.mark.parametrize("kind, probe", [("ranking", "nearest"), ("row-search", "same-class")])
def test_a_probe_for_other_questions(ask, kind, probe):
    code, lines = ask(searching(kind) + f"    probe: {{use: {probe}}}\n", more=["-c", "test"])
    assert code == 1
    assert_failed(lines, "item" if probe == "nearest" else "class")


RARE = GOOD + "20,rare\n"


def test_a_label_that_occurs_only_in_the_test_fold(ask):
    yaml = TASK.format(target="y") + searching("supervised-ranking").replace("tasks:\n  t:", "  s:")
    suite = yaml + "suites:\n  both: {tasks: [t, s]}\n"
    assert ask(suite, RARE, "both")[0] == 0
    (run,) = map(karat.Run.open, Path("results").iterdir())
    assert run.results()["status"].tolist() == ["ok"] * 10
    records = [record for record in run.records() if record["task"] == "s"]
    (notes,) = [record["notes"] for record in records if record["notes"]]
    assert notes[0].startswith("1 of ")  # one fold tests the only row of its class
    asked = [set(run.predictions("s", fold).group) for fold in range(5)]
    assert "20" not in set().union(*asked) and len(set().union(*asked)) == 20
    tested = [run.predictions("t", fold) for fold in range(5)]
    (rare,) = [p for p in tested if "rare" in p.target.tolist()]
    assert rare.predictions[rare.target == "rare"].tolist() != ["rare"]
    assert rare.classes == ("high", "low", "rare")
