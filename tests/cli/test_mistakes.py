"""What newcomers type: one line on standard error that says what to do, and exit code 2."""

import shlex

import pytest

from karat.cli.mistakes import INSTEAD

TABLE = "age,plan,churn\n" + "".join(
    f"{i},{'ab'[i % 2]},{'yes' if i > 9 else 'no'}\n" for i in range(20)
)
MODULE = """
class MyEncoder:
    def fit(self, items, y=None): return self
    def transform(self, items): return [[0.0] for _ in range(len(items))]
"""

#: a mistake, and what the message must name
MISTAKES = {
    "evaluate quickstart": "karat run quickstart",
    "benchmark quickstart -m onehot": "karat run quickstart -m onehot",
    "test quickstart": "karat run quickstart",
    "ls models": "karat list models",
    "models": "karat list models",
    "show-results results": "karat leaderboard results",
    "leaderbord results": '"leaderboard"',
    "version": "karat --version",
    "--verion": "--version",
    "install text": '"karat[text]"',
    "churn.csv --target churn": "karat run churn.csv --target churn",
    "list encoders": '"models"',
    "list model": '"models"',
    "leaderboard": "karat leaderboard results",
    "leaderboard nowhere": "nowhere",
    "leaderboard churn.csv": "churn.csv",
    "compare onehot random": "-a onehot -b random",
    "plot scatter results": "heatmap",
    "export results --as csv": "model-card",
    "check my_module": '"my_module:Name"',
    "check my_module.MyEncoder": '"my_module:MyEncoder"',
    "show chrun.csv": '"churn.csv"',
    "run": "karat run quickstart",
    "run --target churn": "karat run churn.csv --target churn",
    "run quickstrat": '"quickstart"',
    "run quickstart onehot": "-m onehot",
    "run quickstart --models onehot": "-m NAME",
    "run quickstart -m onehot,random": "-m onehot -m random",
    "run quickstart -m onehott": '"onehot"',
    "run quickstart -m rf": '"random-forest"',
    "run quickstart -m logistic": '"logistic-regression"',
    "run quickstart -m xgb": '"xgboost"',
    "run quickstart -m LogReg": '"logistic-regression"',
    "run quickstart -m lightgbm": "lightgbm.LGBMClassifier",
    "run quickstart -m knn": "KNeighborsClassifier",
    "run quickstart -m all-MiniLM-L6-v2": '"minilm"',
    "run quickstart -m intfloat/e5-small": "sentence-transformers:intfloat/e5-small",
    "run quickstart -m my_module.MyEncoder": '"my_module:MyEncoder"',
    "run quickstart -m my_modul.MyEncoder": '"my_modul:MyEncoder"',
    "run quickstart -m my_module.py:MyEncoder": '"my_module:MyEncoder"',
    "run quickstart -m ./my_module:MyEncoder": '"my_module:MyEncoder"',
    "run quickstart -m my_module:MyEncodr": '"my_module:MyEncoder"',
    "run quickstart -m my_module.py": "my_module:Name",
    "run quickstart -m vectors.text": '"vectors.txt"',
    "run quickstart -m vector.txt": '"vectors.txt"',
    "run vectors.txt": "-m vectors.txt",
    "run churn.csv -m dummy": "--target",
    "run churn.csv -t churn -m dummy": "--target churn",
    "run churn.csv --target chrun -m dummy": '"churn"',
    "run chrun.csv --target churn -m dummy": '"churn.csv"',
    "run churn.csv --target churn --kind binary": '"classification"',
    "run churn.csv --target churn --like tacoo": '"taco"',
    "run churn.csv --target churn -m dummy --n-jobs 2": "--workers",
    "run churn.csv --target churn -m dummy --seed abc": "abc",
    "run churn.csv --target churn -m dummy --format md": '"markdown"',
    "run churn.csv --target churn -m dummy --verbos": "--verbose",
    "run churn.csv --target churn -m dummy -X t.metrics=aur_oc": '"auc"',
    "run churn.csv --target churn -m dummy -X t.metrics=f_score": '"f1"',
    "run churn.csv --target churn -m dummy --metric f_score": '"f1"',
    "run churn.csv --target churn -m dummy --cv 5": "--folds N",
    "run churn.csv --target churn -m dummy --scoring f1": "--metric NAME",
    "run churn.csv --target churn -m dummy --folds 1": "--only-fold 1",
    "run churn.csv --target churn -m dummy --like taco --folds 4": "-X t.split=kfold",
    "run churn.csv --target churn -m dummy -X unanswered=drop": '"unanswered"',
    "run quickstart -m randomforest": '"random-forest"',
    "run churn.csv --target churn -m my_module:Nope": "It has: MyEncoder",
    "run churn.csv --target churn -m broken:Name": 'python -c "import broken"',
    "run churn.csv --target churn -m imports:Name": "imports no_such_library",
    "run churn.csv --target churn -m needs:Name": "-m needs:encoder",
    "run blanks.csv --target churn -m dummy": '--separator " "',
    "run headless.csv --target churn -m dummy": "the names of its columns",
    "run quoted.csv --target churn -m dummy": "never closed",
    "run twice.csv --target churn -m dummy": "rename one",
    "run gaps.csv --target churn -m dummy": "--unanswered drop",
    "run cp1252.csv --target churn -m dummy": "--encoding cp1252",
    "run binary.csv --target churn -m dummy": "not a text file",
    "run table.xlsx --target churn -m dummy": "Save the sheet as CSV",
    "run lists.csv --target churn -m dummy": "--texts churn",
}


#: files of newcomers that cannot be read as they are
BROKEN = {
    "binary.csv": b"a\0b",
    "blanks.csv": TABLE.replace(",", " ").encode(),
    "broken.py": b"class Name(:\n",
    "cp1252.csv": TABLE.replace("plan", "plan \u20ac").encode("cp1252"),
    "gaps.csv": TABLE.replace("3,b,no", "3,b,").encode(),
    "headless.csv": TABLE.partition("\n")[2].encode(),
    "imports.py": b"import no_such_library\n",
    "lists.csv": TABLE.replace("3,b,no", "3,b,no|yes").encode(),
    "needs.py": b"class Name:\n    def __init__(self, size): pass\n",
    "quoted.csv": TABLE.replace("3,b,no", '3,"b,no').encode(),
    "table.xlsx": b"PK\3\4",
    "twice.csv": TABLE.replace("plan", "age").encode(),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Enter a folder with a table, a vector file and a module."""
    (tmp_path / "churn.csv").write_text(TABLE)
    (tmp_path / "my_module.py").write_text(MODULE)
    for name, content in BROKEN.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "vectors.txt").write_text("town1 0.5 1\ntown2 1 0.5\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    return tmp_path


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_that_says_what_to_do(line, folder, cli):
    done = cli(*shlex.split(line))
    assert done.code == 2
    messages = done.err.splitlines()
    assert len(messages) == 1, messages
    assert messages[0].startswith("error: ") and MISTAKES[line] in messages[0]
    assert len(messages[0]) < 400
    assert done.out == "" and not (folder / "results").exists()


def test_what_a_message_names_exists(cli):
    for command in INSTEAD.values():
        words = ["plot", "-h"] if command == "plot" else [*command.split()[:1], "-h"]
        assert cli(*words).code == 0, command


def test_no_command_shows_the_help(cli):
    assert "karat run quickstart" in "".join(cli()[1:])
