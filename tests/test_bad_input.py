"""Everything that can be wrong with what people ask for: one clear line each, and nothing runs."""

import sys
import textwrap
from pathlib import Path

import pandas as pd
import pytest

import karat
from karat.errors import KaratError

GOOD = "x,y\n" + "".join(f"{i},{'low' if i < 10 else 'high'}\n" for i in range(20))
TASK = """
tasks:
  t:
    extends: classification
    dataset: {{path: data.csv, target: {target}, kind: classes}}
    metrics: [acc]
"""


@pytest.fixture
def ask(cli, tmp_path, monkeypatch, clean_registry):
    """Run a task of a YAML text and a CSV text; return exit code and messages."""
    monkeypatch.chdir(tmp_path)

    def asked(yaml, data=GOOD, suite="t", model="onehot", more=()):
        Path("my.yaml").write_text(textwrap.dedent(yaml))
        Path("data.csv").write_text(data)
        said = cli("run", suite, "--define", "my.yaml", "-m", model, "-w", 1, *more)
        assert "Traceback" not in said.err
        assert said.out == "" or said.code != 2
        if said.code == 2:
            assert not Path("results").exists()
        return said.code, said.err.splitlines()

    return asked


def refused(asked):
    code, lines = asked
    assert code == 2
    assert all(line.startswith("error: ") for line in lines if "mistakes, nothing" not in line)
    return [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]


def test_what_is_right_runs(ask):
    assert ask(TASK.format(target="y"))[0] == 0


# -- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"suite": "tt"}, 'there is no suite "tt". Did you mean "t"?   (karat list suites)'),
        ({"model": "onehott"}, 'there is no model "onehott". Did you mean "onehot"?'),
        ({"model": "no.such:Thing"}, 'cannot load "no.such:Thing": ModuleNotFoundError'),
        ({"model": "nowhere.txt"}, "there is no vector file nowhere.txt."),
        ({"more": ["-t", "u"]}, 'the suite has no task "u". It has: t'),
        ({"more": ["-f", "5"]}, 'task "t" has the folds 0 to 4; there is no fold 5.'),
        ({"more": ["-f", "-1"]}, "folds must be a whole number from 0 to 2147483647, not -1."),
        ({"more": ["-c", "tset"]}, 'there is no constraint "tset". Did you mean "test"?'),
        ({"more": ["-w", "0"]}, "workers must be a whole number from 1"),
        ({"more": ["--seed", "-5"]}, "seed must be a whole number from 0"),
        ({"more": ["--max-rows", "1"]}, "max_rows must be a whole number from 2"),
        ({"more": ["--define", "nowhere.yaml"]}, "nowhere.yaml"),
    ],
)
def test_unknown_names_and_values(ask, changes, said):
    (message,) = refused(ask(TASK.format(target="y"), **changes))
    assert message.startswith(said) or said in message


@pytest.mark.parametrize(
    "line, said",
    [
        ("metrics: [acc, acurracy]", 'task "t": there is no metric "acurracy".'),
        ('metrics: ["hits@0"]', "k must be 1, 2, 3"),
        ("probe: {use: trained, head: logistc}", 'no head "logistc". Did you mean "logistic"?'),
        ("probe: {use: trained, head: {use: knn, k: 3}}", 'head "knn" has no parameter "k".'),
        ("probe: {use: traind}", 'there is no probe "traind". Did you mean "trained"?'),
        ("probe: {use: trained, compose: sum}", 'there is no composer "sum".'),
        ("split: {use: kfolds}", 'there is no splitter "kfolds". Did you mean "kfold"?'),
        ("split: {use: kfold, flods: 3}", 'no parameter "flods". Did you mean "folds"?'),
        ("split: {use: kfold, folds: 1}", "kfold: folds is a whole number of 2 or more, not 1."),
        ("corruptions: {noise_gausian: [0.1]}", 'no corruption "noise_gausian".'),
    ],
)
def test_unknown_parts_of_a_task(ask, line, said):
    yaml = TASK.format(target="y")
    key = line.partition(":")[0]
    lines = [each for each in yaml.splitlines() if not each.strip().startswith(f"{key}:")]
    messages = refused(ask("\n".join([*lines, f"    {line}"])))
    assert len(messages) == 1
    assert said in messages[0]


def test_two_mistakes_are_two_lines_and_a_count(ask):
    code, lines = ask(TASK.format(target="y"), suite="quikstart", model="onehott")
    assert code == 2
    assert lines == [
        'error: there is no suite "quikstart". Did you mean "quickstart"?   (karat list suites)',
        'error: there is no model "onehott". Did you mean "onehot"?   (karat list models)',
        "2 mistakes, nothing was run.",
    ]


def test_all_names_that_are_wrong_are_told_together(cli):
    said = cli("run", "quickstart", "-m", "onehott", "-t", "pengins", "-c", "smok")
    assert said.code == 2
    lines = said.err.splitlines()
    assert lines[-1] == "3 mistakes, nothing was run."
    for line, name in zip(lines, ("pengins", "onehott", "smok"), strict=False):
        assert f'"{name}"' in line


# -- YAML -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "yaml, said",
    [
        (
            "tasks:\n  t:\n    extends: classification\n    dataset: iris\n    metrcs: [acc]\n",
            'my.yaml:5: tasks.t.metrcs: unknown key. Did you mean "metrics"?',
        ),
        ("tasks:\n\tt: {}\n", "my.yaml:2: "),
        ("tasks: !!python/object/apply:os.system [echo]\n", "my.yaml:1: "),
        (
            "tasks:\n  t: {extends: clasification, dataset: iris}\n",
            'Did you mean "classification"?',
        ),
        ("tasks:\n  t: {extends: t, dataset: iris}\n", "my.yaml:2: "),
        ("tasks:\n  t: {extends: classification, dataset: irs}\n", 'there is no dataset "irs".'),
        ("taks: {}\n", 'unknown section. Did you mean "tasks"?'),
        ("tasks: [1, 2]\n", "must be a mapping of names to definitions, not a list."),
        ("tasks:\n  t: {extends: classification, dataset: iris, max_rows: many}\n", "max_rows"),
        ("suites:\n  t: {tasks: [nothing]}\n", 'there is no task "nothing".'),
        ("models:\n  onehot: {use: 'a.b:C'}\n", 'there is already a model "onehot"'),
        ("tasks:\n  t: {extends: classification\n", "my.yaml:"),
    ],
    ids=[
        *("mistyped key", "tab", "python tag", "missing parent", "circle", "data set", "section"),
        *("list", "wrong type", "task of a suite", "taken name", "open bracket"),
    ],
)
def test_mistakes_in_yaml_are_told_with_their_line(ask, yaml, said):
    messages = refused(ask(yaml))
    assert len(messages) == 1
    assert messages[0].startswith("my.yaml:")
    assert said in messages[0]


def test_yaml_runs_no_code(ask, tmp_path):
    marker = tmp_path / "ran"
    refused(ask(f"tasks: !!python/object/apply:pathlib.Path.touch [{marker}]\n"))
    assert not marker.exists()


# -- data -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, said",
    [
        ("x,z\n1,a\n2,b\n", 'my.yaml:5: tasks.t.dataset.target: "y" is not a column. '),
        ("x,y\n", "data.csv has a header and no rows."),
        ("", "empty"),
        ("x,y\n1,a\n2,a\n3,a\n", 'there is only one class, "a"; at least two are needed.'),
        ("x,y\n1,a\n2,\n3,b\n", 'the target "y" is missing in 1 of 3 rows (first: row 1)'),
        ("x,x,y\n1,2,a\n3,4,b\n", 'the column "x" stands twice'),
        ("y\na\nb\n", 'no column besides the target "y"'),
        ("x,y\n1,a\n2,b\n", "cannot make 5 folds"),
    ],
    ids=["no target", "no rows", "nothing", "one class", "NaN", "twice", "no items", "too small"],
)
def test_tables_that_cannot_be_used(ask, data, said):
    messages = refused(ask(TASK.format(target="y"), data))
    assert len(messages) == 1
    assert said in messages[0]
    assert len(messages[0]) < 400


def test_a_wrong_column_reads_as_the_page_of_mistakes_shows_it(ask):
    (message,) = refused(ask(TASK.format(target="yy")))
    assert message == (
        'my.yaml:5: tasks.t.dataset.target: "yy" is not a column. Did you mean "y"? It has: x, y'
    )


def test_a_file_that_is_not_there(ask):
    yaml = TASK.format(target="y").replace("data.csv", "dta.csv")
    (message,) = refused(ask(yaml))
    assert "dta.csv" in message and 'Did you mean "data.csv"?' in message
    assert message.startswith("my.yaml:5: tasks.t.dataset")


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda t: karat.Dataset.from_table(t.iloc[:0], "y"), "is empty"),
        (lambda t: karat.Dataset.from_table(t, "z"), '"z" is not a column'),
        (lambda t: karat.Dataset.from_table(t.assign(y="a"), "y"), "only one class"),
        (lambda t: karat.Dataset.from_table(pd.concat([t, t], axis=1), "y"), "stands twice"),
        (lambda t: karat.Dataset.from_table(t.assign(y=[None, "b"]), "y"), "is missing in 1 of 2"),
        (lambda t: karat.Dataset.from_table([1, 2], "y"), "expected a data frame"),
    ],
)
def test_tables_in_python(make, said):
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    with pytest.raises(KaratError, match=said):
        make(table)


# -- models ---------------------------------------------------------------------------------

ENCODERS = {
    "few": "np.zeros((len(items) - 1, 2))",
    "hole": "np.where(np.eye(len(items), 2) > 0, np.nan, 1.0)",
    "text": "[['a'] for _ in range(len(items))]",
    "flat": "np.zeros(len(items))",
    "infinite": "np.full((len(items), 1), np.inf)",
    "width": "np.zeros((len(items), len(items)))",
    "raises": "1 / 0",
    "exits": "sys.exit(5)",
}
SAID = {
    "few": "rows for",
    "hole": "returned NaN in part of a row",
    "text": "must return numbers, one row per item",
    "flat": "must return a matrix, one row per item",
    "infinite": "returned an infinite number",
    "width": "dimensions for the test items and",
    "raises": "ZeroDivisionError: division by zero",
    "exits": "SystemExit: 5",
}


def said_so(told, text):
    """Return whether failures say a text; those that say the very same are counted."""
    return text in told[0] and all(text in line or "1 more job failed so" in line for line in told)


#: who learns nothing embeds all items in one call, so its vectors have one width
CASES = [(name, stateless) for name in ENCODERS for stateless in (True, False)]
CASES.remove(("width", True))


@pytest.mark.parametrize("name, stateless", CASES)
def test_a_broken_encoder_is_a_failed_row_and_the_others_run(ask, tmp_path, name, stateless):
    fit = "" if stateless else "    def fit(self, items, y=None): return self\n"
    Path(tmp_path, "broken_encoder.py").write_text(
        f"import sys\nimport numpy as np\nclass Broken:\n{fit}"
        f"    def transform(self, items): return {ENCODERS[name]}\n"
    )
    sys.modules.pop("broken_encoder", None)
    code, lines = ask(
        TASK.format(target="y"), model="broken_encoder:Broken", more=["-m", "onehot", "-c", "test"]
    )
    assert code == 1
    told = [line for line in lines if "✗" in line]
    assert len(told) == 2
    assert said_so(told, SAID[name])
    for path in Path("results").glob("Broken.*"):
        run = karat.Run.open(path)
        assert run.results()["status"].tolist() == ["failed", "failed"]
        for fold in (0, 1):
            assert "Traceback" in (path / "logs" / "t" / f"{fold}.txt").read_text()
    (onehot,) = (karat.Run.open(path) for path in Path("results").glob("onehot.*"))
    assert onehot.results()["status"].tolist() == ["ok", "ok"]


# -- searches and rankings ------------------------------------------------------------------

SEARCHES = {
    "ranking": "extends: ranking",
    "supervised-ranking": "extends: supervised-ranking",
    "row-search": "extends: row-search",
    "text-search": "extends: text-search\n    ask: {conditions: [numeric], most: 0.2}",
}


def searching(kind: str, **dataset: str) -> str:
    """Return the YAML of a task that ranks, about the table of these tests."""
    given = {"path": "data.csv", "target": "y", "kind": "classes", **dataset}
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


@pytest.mark.parametrize("name", ["few", "hole", "flat", "infinite"])
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_broken_encoder_fails_in_searches_too(ask, tmp_path, kind, name):
    Path(tmp_path, "broken_encoder.py").write_text(
        "import numpy as np\nclass Broken:\n    def fit(self, items, y=None): return self\n"
        f"    def transform(self, items): return {ENCODERS[name]}\n"
    )
    sys.modules.pop("broken_encoder", None)
    code, lines = ask(searching(kind), model="broken_encoder:Broken", more=["-c", "test"])
    told = [line for line in lines if "✗" in line]
    assert code == 1 and len(told) == 2
    assert said_so(told, SAID[name])
    (run,) = map(karat.Run.open, Path("results").iterdir())
    assert run.results()["status"].tolist() == ["failed", "failed"]


def test_an_encoder_of_another_width_for_test_queries_is_told(ask, tmp_path):
    Path(tmp_path, "broken_encoder.py").write_text(
        "import numpy as np\nclass Broken:\n    def fit(self, items, y=None): return self\n"
        f"    def transform(self, items): return {ENCODERS['width']}\n"
    )
    sys.modules.pop("broken_encoder", None)
    for kind in ("supervised-ranking", "row-search"):
        code, lines = ask(searching(kind), model="broken_encoder:Broken", more=["-c", "test"])
        told = [line for line in lines if "✗" in line]
        assert code == 1 and len(told) == 2 and said_so(told, SAID["width"])


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(
    "given, said",
    [
        ({"target": "yy"}, ': tasks.t.dataset.target: "yy" is not a column. Did you mean "y"?'),
        ({"target": ""}, 'say which column holds the answers: "target: NAME".'),
        ({"drop": "[z]"}, '"z" is not a column. It has: x, y'),
        ({"group": "z"}, '"z" is not a column. It has: x, y'),
        ({"part": "z"}, '"z" is not a column. It has: x, y'),
        ({"fields": "[z]"}, '"z" is not a column. It has: x, y'),
    ],
    ids=["target", "no target", "drop", "group", "part", "fields"],
)
def test_columns_that_are_not_there(ask, kind, given, said):
    (message,) = refused(ask(searching(kind, **given)))
    assert said in message and message.startswith("my.yaml:")


@pytest.mark.parametrize(
    "line, said",
    [
        ("ask: {use: partial-row}", 'there is no asker "partial-row". Did you mean "partial-rows"'),
        ("ask: {keeps: 0.5}", 'ask "partial-rows" has no parameter "keeps". Did you mean "keep"?'),
        ("ask: {keep: 0}", "ask: partial-rows: keep is above 0 and at most 1, not 0."),
        ("ask: {queries: 0.5}", "ask: partial-rows: queries is a whole number of 1 or more, not"),
        ("ask: 5", "tasks.t.ask: must be a name or a mapping with use"),
        ("aks: {keep: 1}", 'my.yaml:5: tasks.t.aks: unknown key. Did you mean "ask"?'),
        ("probe: {use: nearest, queries: inside}", 'queries is "among" or "apart", not "inside"'),
        ("probe: {use: same-class, queries: 0}", "queries is a whole number of 1 or more, not 0"),
        ("split: {use: all, share: 2}", "all: share is above 0 and at most 1, not 2."),
        ("split: {use: holdout, test: 0.5, test_rows: 3}", "holdout: say test or test_rows, not b"),
        ("metrics: [acc]", "the metric acc needs classes, and t partial-rows under the probe near"),
        ('metrics: ["mrr@0"]', "mrr@0"),
    ],
)
def test_mistakes_in_how_it_is_asked(ask, line, said):
    (message,) = refused(ask(searching("row-search") + f"    {line}\n"))
    assert said in message


@pytest.mark.parametrize(
    "kind, line, said",
    [
        ("ranking", "probe: {use: nearest}", "whose truth is an item; t has 1 fields and classes"),
        ("row-search", "probe: {use: same-class}", "whose truth is a class; t partial-rows has 1"),
    ],
)
def test_a_probe_for_other_questions_is_told(ask, kind, line, said):
    code, lines = ask(searching(kind) + f"    {line}\n", more=["-c", "test"])
    told = [line for line in lines if "✗" in line]
    assert code == 1 and len(told) == 2 and said_so(told, said)


# -- a label that only the test side has ----------------------------------------------------

RARE = GOOD + "20,rare\n"


def test_a_label_seen_only_in_test_is_wrong_in_classes_and_not_asked_for_in_rankings(ask):
    yaml = TASK.format(target="y") + searching("supervised-ranking").replace("tasks:\n  t:", "  s:")
    suite = yaml + "suites:\n  both: {tasks: [t, s]}\n"
    assert ask(suite, RARE, "both")[0] == 0
    (run,) = map(karat.Run.open, Path("results").iterdir())
    assert run.results()["status"].tolist() == ["ok"] * 10
    records = [record for record in run.records() if record["task"] == "s"]
    told = [record["notes"] for record in records if record["notes"]]
    (notes,) = told  # one fold tests the only row of its class
    assert notes[0].startswith("1 of ") and notes[0].endswith("class to find; not asked.")
    asked = [set(run.predictions("s", fold).group) for fold in range(5)]
    assert "20" not in set().union(*asked) and len(set().union(*asked)) == 20
    tested = [run.predictions("t", fold) for fold in range(5)]
    (rare,) = [p for p in tested if "rare" in p.truth.tolist()]
    assert rare.predictions[rare.truth == "rare"].tolist() != ["rare"]
    assert rare.classes == ("high", "low", "rare")
