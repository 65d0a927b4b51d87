"""What notebooks and prompts show: short texts, HTML forms, a report that is a path."""

import inspect
import os
import pickle
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.core.notebook import PageFiles, PagePath, in_notebook
from karat.core.predictions import Predictions
from karat.core.task import Suite, Task
from karat.metrics.metric import get_metric

#: public classes that are no values to look at: bases, and what a user makes to pass on
NOT_SHOWN = {"NewRuns", "Progress", "StatelessEncoder"}
#: public classes with a short text only
TEXT_ONLY = {
    "Machines",
    "Only",
    "Output",
    "Variants",
    "Command",
    "Extension",
    "Finding",
    "Fingerprint",
    "Fold",
    "Metric",
    "Overall",
}


class FakeDisplay:
    """Stands for IPython: ``outputs`` are the contents of the outputs of a cell."""

    def __init__(self, monkeypatch):
        self.outputs, self.changes = [], 0
        shell = types.SimpleNamespace(kernel=object())
        package = types.ModuleType("IPython")
        package.get_ipython = lambda: shell
        package.display = types.ModuleType("IPython.display")
        package.display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", package.display)

    def display(self, content, *, raw, display_id):
        assert raw and display_id
        place = len(self.outputs)
        self.outputs.append(content)

        def update(content, *, raw):
            assert raw
            self.changes += 1
            self.outputs[place] = content

        return types.SimpleNamespace(update=update)


@pytest.fixture
def notebook(monkeypatch):
    return FakeDisplay(monkeypatch)


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=40), "y": ["no", "yes"] * 20})
    data = Dataset.from_table(table, "y", name="small", kind="classification")
    return Task("small", data, metrics=["acc"], kind="classification")


@pytest.fixture(scope="module")
def runs(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return karat.evaluate(["onehot", "dummy"], [task], output=folder, progress=False)


def test_a_run_in_a_notebook_is_one_output_that_changes(notebook, task, tmp_path, monkeypatch):
    monkeypatch.setattr("karat.execution.progress.REDRAW", 0.0)
    karat.evaluate(["onehot", "dummy"], [task], output=tmp_path, progress=True)
    (content,) = notebook.outputs
    assert notebook.changes >= 10  # one change for each job
    assert "10 of 10 jobs" in content["text/plain"]
    assert '<progress value="10" max="10">' in content["text/html"]


def test_a_failed_job_is_shown_below_the_bar(notebook, task, tmp_path):
    class Broken:
        def fit(self, X, y=None):
            raise ValueError("<b>no</b>")

        def transform(self, X):
            return X

    with pytest.warns(karat.KaratWarning):
        karat.evaluate({"broken": Broken()}, [task], output=tmp_path, progress=True)
    (content,) = notebook.outputs
    assert "5 failed" in content["text/plain"] and "4 more jobs" in content["text/plain"]
    assert "&lt;b&gt;no" in content["text/html"] and "<b>no" not in content["text/html"]


def test_a_leaderboard_shows_itself_once(notebook, runs, capsys):
    board = karat.leaderboard(runs)
    assert "onehot" in repr(board) and "onehot" in board._repr_html_()
    assert notebook.outputs == [] and capsys.readouterr().out == ""


def test_outside_of_a_notebook_there_is_none(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()


def test_every_public_class_has_a_short_text_and_an_html_form():
    public = {name: getattr(karat, name) for name in karat.importable_names()}
    classes = {name: cls for name, cls in public.items() if inspect.isclass(cls)}
    for name, cls in classes.items():
        if issubclass(cls, Exception | Warning) or name in NOT_SHOWN:
            continue
        assert name in TEXT_ONLY or hasattr(cls, "_repr_html_"), name


def test_texts_are_one_line(task, runs):
    suite = Suite("several", (task,) * 9, ("onehot",), "Nine times.")
    predictions = runs[0].predictions("small", 0)
    short = [task.dataset, task, suite, runs[0], predictions, get_metric("acc")]
    short += [karat.Fold(np.arange(3), np.arange(2)), karat.suite("quickstart")]
    for value in short:
        assert "\n" not in repr(value) and 10 < len(repr(value)) < 140, repr(value)
        assert "Loader" not in repr(value) and "array(" not in repr(value)
    assert "40 rows, 1 feature" in repr(task.dataset)
    for value in (task.dataset, task, suite, runs[0], predictions):
        assert value._repr_html_().startswith("<div>")


def test_names_are_escaped():
    data = Dataset.from_table(pd.DataFrame({"<b>": [1, 2], "y": ["<i>", "b"]}), "y", name="<b>")
    task = Task("<b>", data, metrics=["acc"], description="<b>")
    for html in (data._repr_html_(), task._repr_html_(), Suite("<b>", (task,))._repr_html_()):
        assert "<b>" not in html and "<i>" not in html


def test_results_have_the_same_sentence_in_both_forms(runs):
    for found in (karat.compare_all(runs), karat.rescore(runs[0], ["mcc"]), karat.check_runs(runs)):
        assert len(repr(found)) < 3000 and found._repr_html_()
    assert "mcc added" in repr(karat.rescore(runs[0], ["mcc"]))


def test_a_report_is_a_path_and_shows_the_page(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = karat.report(runs, "my report.html")
    assert isinstance(path, Path) and repr(path) == "my report.html"
    assert path == Path("my report.html") and os.fspath(path) == "my report.html"
    with open(path, encoding="utf-8") as file:
        assert file.read() == Path(path).read_text(encoding="utf-8")
    assert pickle.loads(pickle.dumps(path)) == path
    assert (path.parent / "other.html").suffix == ".html"
    assert 'src="my%20report.html"' in path._repr_html_()


def test_a_page_that_a_notebook_cannot_serve_is_named(tmp_path, monkeypatch):
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert "<iframe" not in PagePath(tmp_path / "<b>.html")._repr_html_()
    assert "&lt;b&gt;.html" in PagePath(tmp_path / "<b>.html")._repr_html_()


def test_the_files_of_a_site_are_a_list():
    files = PageFiles([Path("site/style.css"), Path("site/index.html")])
    assert files == [Path("site/style.css"), Path("site/index.html")]
    assert repr(files) == "site/index.html and 1 more files"
    assert "site/index.html" in files._repr_html_()


def test_predictions_of_rows():
    predictions = Predictions(predictions=[1.0, 2.0], target=[1.0, 3.0], key=["a", "b"])
    assert repr(predictions) == "<Predictions of 2 rows: numbers, target: numbers>"
    assert "prediction" in predictions._repr_html_()


NOTEBOOK = [
    "import karat, pandas as pd\n"
    "table = pd.DataFrame({'x': range(40), 'y': ['no', 'yes'] * 20})\n"
    "data = karat.Dataset.from_table(table, 'y', name='small')",
    "runs = karat.evaluate(['onehot', 'dummy'], [karat.Task('small', data, metrics=['acc'])])",
    "karat.leaderboard(runs)",
    "karat.report(runs)",
]


@pytest.mark.slow
def test_a_real_notebook(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    root = str(Path(karat.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    cells = [nbformat.v4.new_code_cell(text) for text in NOTEBOOK]
    book = nbformat.v4.new_notebook(cells=cells)
    client.NotebookClient(book, resources={"metadata": {"path": str(tmp_path)}}).execute()
    _, ran, board, page = (cell.outputs for cell in book.cells)
    assert len(ran) == len(board) == len(page) == 1
    assert "10 of 10 jobs" in ran[0].data["text/plain"]
    assert "onehot" in board[0].data["text/html"]
    assert "<iframe" in page[0].data["text/html"]
