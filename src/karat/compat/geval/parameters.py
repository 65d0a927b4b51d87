"""GEval's parameters: checked before anything runs, from a call or from an XML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from karat.core.registry import analogy_functions
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.models.vector_files import VECTOR_FILE_FORMATS, check_format
from karat.probes.similarity import Measure

#: long and short task names, in the order of execution
TASKS = {
    "Classification": "Class",
    "Regression": "Reg",
    "Clustering": "Clu",
    "DocumentSimilarity": "DocSim",
    "EntityRelatedness": "EntRel",
    "SemanticAnalogies": "SemAn",
}
#: GEval's task and gold standard, by Karat dataset
GOLD = {
    **{
        data + end: (task, name)
        for task, end in (("Classification", ""), ("Regression", "_rating"))
        for data, name in (
            ("cities", "Cities"),
            ("movies", "MetacriticMovies"),
            ("albums", "MetacriticAlbums"),
            ("aaup", "AAUP"),
            ("forbes", "Forbes"),
        )
    },
    "cities_and_countries": ("Clustering", "citiesAndCountries_cluster"),
    "cities2000_and_countries": ("Clustering", "cities2000AndCountries_cluster"),
    "five_domains": ("Clustering", "citiesMoviesAlbumsCompaniesUni_cluster"),
    "teams": ("Clustering", "teams_cluster"),
    "lp50": ("DocumentSimilarity", "LP50"),
    "kore": ("EntityRelatedness", "KORE"),
    "capital_country": ("SemanticAnalogies", "capital_country_entities"),
    "all_capital_country": ("SemanticAnalogies", "all_capital_country_entities"),
    "currency": ("SemanticAnalogies", "currency_entities"),
    "city_state": ("SemanticAnalogies", "city_state_entities"),
}
PROTOCOLS = ("corrected", "legacy")
#: how missing related entities are ranked: last and tied, or last in a random order
TAILS = ("tied", "random")
ALL = "_all"
#: other spellings used by GEval's documentation or code
SPELLINGS = {
    "vector_file": "vector_filename",
    "vectors_file": "vector_filename",
    "similarity_function": "similarity_metric",
    "result_directory": "result_directory_path",
    "gold_directory": "gold_directory_path",
}
#: parameters that an XML file has as numbers or booleans
_TYPED = ("vector_size", "top_k", "parallel", "debugging_mode")
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


@dataclass(frozen=True)
class Parameters(Mapping[str, Any]):
    """The parameters of ``evaluate``; also a mapping by name, in any of GEval's spellings.

    >>> Parameters("v.txt", top_k=3)["top_k"], Parameters("v.txt")["similarity_function"]
    (3, 'cosine')
    """

    vector_filename: str
    vector_file_format: str = "txt"
    vector_size: int | None = None
    parallel: bool = False
    tasks: str | Iterable[str] = ALL
    similarity_metric: str | Callable[..., Any] = "cosine"
    top_k: int = 2
    compare_with: str | Iterable[str] = ALL
    debugging_mode: bool = False
    analogy_function: str | Callable[..., Any] | None = None
    result_directory_path: str | Path | None = None
    protocol: str = "corrected"
    gold_directory_path: str | Path | None = None
    datasets: str | Iterable[str] = ALL
    missing_related: str = "tied"
    define: Sequence[str | Path] = ()
    constraint: str = "default"
    workers: int | None = None
    result_name: str | None = None

    def __getitem__(self, name: str) -> Any:
        return vars(self)[SPELLINGS.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def checked(self) -> Parameters:
        """Return the parameters in canonical spelling, or raise one error with all mistakes."""
        mistakes: list[str] = []
        given: dict[str, Any] = dict(vars(self))
        extensions = extensions_of(self)  # first: other names may be defined there
        given["define"] = extensions.define
        for name, check in _CHECKS.items():
            try:
                own = (extensions,) if name == "tasks" else ()
                given[name] = check(name, given[name], *own)
            except DefinitionError as error:
                mistakes += error.messages
        if mistakes:
            raise DefinitionError(*mistakes)
        return Parameters(**given)


def from_xml(path: str | Path) -> Parameters:
    """Return the parameters of an XML file: ``<parameters>`` with one element for each."""
    given: dict[str, Any] = {}
    known = [field.name for field in fields(Parameters)]
    for element in _parse_xml(Path(path)):
        name, text = SPELLINGS.get(element.tag, element.tag), (element.text or "").strip()
        if name not in known:
            hint = did_you_mean(element.tag, [*known, *SPELLINGS])
            raise DefinitionError(f"{path}: unknown parameter <{element.tag}>.{hint}")
        if name in given:
            raise DefinitionError(f"{path}: duplicate parameter <{element.tag}>.")
        for nested in (below for value in element for below in value):
            raise DataError(f"{path}: unexpected element <{nested.tag}> below <{element.tag}>.")
        values = [value.text.strip() for value in element if value.text and value.text.strip()]
        if name in ("tasks", "compare_with", "datasets"):
            given[name] = values or _words(text) or ALL
        elif text:
            given[name] = _CHECKS[name](name, text) if name in _TYPED else text
    if "vector_filename" not in given:
        raise DefinitionError(f"{path}: <vector_filename> is missing.")
    return Parameters(**given)


class _NoDoctype(ElementTree.TreeBuilder):
    """Rejects a document type, whose entities can name other files or grow without limit."""

    def doctype(self, *_: Any) -> None:
        raise DataError("a parameter file must not have a document type (<!DOCTYPE ...>).")


def _parse_xml(path: Path) -> ElementTree.Element:
    parser = ElementTree.XMLParser(target=_NoDoctype())
    try:
        root = ElementTree.fromstring(path.read_bytes(), parser)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except ElementTree.ParseError as error:
        raise DataError(f"{path} is not valid XML: {error}.") from error
    except (LookupError, ValueError) as error:
        raise DataError(
            f"{path}: its encoding is not supported ({error}); save it as UTF-8."
        ) from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if root.tag != "parameters":
        raise DataError(f"{path}: the root element must be <parameters>, got <{root.tag}>.")
    return root


def extensions_of(params: Parameters) -> Any:
    """Return the tasks and gold standards that parameters may name besides GEval's own."""
    from karat.compat.geval.extensions import Extensions

    given = params.define
    files = [given] if isinstance(given, str | Path) else given or ()
    folder = params.gold_directory_path
    found = Extensions(tuple(map(Path, files)), str(Path(folder).expanduser()) if folder else None)
    if found.define:
        _ = found.catalog  # registers the components of the files
    return found


def task_names(name: str, given: Any, own: Any = None) -> list[str]:
    """Return the long names of tasks, in the order of execution, then the names of own tasks.

    >>> task_names("tasks", ["SemAn", "Classification"])
    ['Classification', 'SemanticAnalogies']
    """
    several = [given] if isinstance(given, type) else given or ()
    wanted = _words(given) if isinstance(given, str) else list(several)
    if not wanted:
        raise DefinitionError(f"{name} is empty: expected {ALL} or some of {', '.join(TASKS)}.")
    if ALL in wanted:
        return list(TASKS)
    spelled = {each.lower(): long for long, short in TASKS.items() for each in (long, short)}
    others = [each for each in wanted if str(each).lower() not in spelled]
    chosen = {spelled[str(each).lower()] for each in wanted if each not in others}
    named = (own or extensions_of(Parameters(""))).task_names(others) if others else []
    return [*(long for long in TASKS if long in chosen), *named]


def gold_names(name: str, given: Any) -> list[str]:
    """Return the names of gold standards, in the order of execution.

    >>> gold_names("datasets", "kore, Cities")
    ['Cities', 'KORE']
    """
    wanted = _words(given) if isinstance(given, str) else [str(each) for each in given or ()]
    known = list(dict.fromkeys(gold for _, gold in GOLD.values()))
    if not wanted:
        raise DefinitionError(f"{name} is empty: expected {ALL} or some of {', '.join(known)}.")
    if ALL in wanted:
        return [ALL]
    spelled = {each.lower(): each for each in known}
    unknown = [each for each in wanted if each.lower() not in spelled]
    if unknown:
        raise DefinitionError(
            *(
                f'unknown gold standard "{each}".{did_you_mean(each, known)} Available: '
                f"{', '.join(known)}; or {ALL}."
                for each in unknown
            )
        )
    chosen = {spelled[each.lower()] for each in wanted}
    return [each for each in known if each in chosen]


def truth(name: str, given: Any) -> bool:
    """Return a boolean parameter, also from a text such as "false".

    >>> truth("parallel", "False"), truth("parallel", True)
    (False, True)
    """
    text = str(given).strip().lower()
    if isinstance(given, bool | str | int) and text in (*_TRUE, *_FALSE):
        return text in _TRUE
    raise DefinitionError(f"{name} must be true or false, got {given!r}.")


def _whole(name: str, given: Any) -> int | None:
    if given is None and name in ("vector_size", "workers"):
        return None
    text = str(given).strip()
    if isinstance(given, bool) or not re.fullmatch("[0-9]+", text) or int(text) < 1:
        raise DefinitionError(f"{name} must be an integer >= 1, got {given!r}.")
    return int(text)


def _file(name: str, given: Any) -> str:
    text = str(given or "")
    path = Path(text).expanduser()
    if not text or not path.is_file():
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() and text else []
        raise DefinitionError(
            f"{name}: file not found: {text or '(empty)'}.{did_you_mean(path.name, near)}"
        )
    return text


def _one_of(known: Iterable[str]) -> Callable[[str, Any], str]:
    def check(name: str, given: Any) -> str:
        text = str(given).strip().lower()
        if text not in known:
            hint = did_you_mean(text, known)
            raise DefinitionError(f'{name} must be one of {", ".join(known)}, got "{given}".{hint}')
        return text

    return check


def _format(name: str, given: Any) -> str:
    from karat.compat.geval.extensions import format_name

    text = format_name(given).strip()
    text = text.lower() if text.lower() in VECTOR_FILE_FORMATS else text
    check_format(text)
    return text


def _function(name: str, given: Any) -> Any:
    found = analogy_functions.get(given) if isinstance(given, str) and given else given
    if found is not None and not callable(found):
        raise DefinitionError(f"{name} must be a function of three vectors, got {given!r}.")
    return given or None


def _folder(name: str, given: Any) -> str | None:
    if given is None:
        return None
    path = Path(given).expanduser()
    if name == "gold_directory_path" and not path.is_dir():
        raise DefinitionError(f"{name}: folder not found: {given}.")
    return str(path)


def _component(name: str, given: Any) -> str | None:
    if given is not None and not re.fullmatch(r"\w[\w.@+-]*", str(given)):
        raise DefinitionError(f"{name} must be letters, digits and _.@+-, got {given!r}.")
    return None if given is None else str(given)


def _runs(name: str, given: Any) -> list[str]:
    given = ALL if given is None else given
    return [given] if isinstance(given, str) else list(map(str, given))


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "vector_filename": _file,
    "vector_file_format": _format,
    "vector_size": _whole,
    "parallel": truth,
    "tasks": task_names,
    "similarity_metric": lambda name, given: Measure(given).given,
    "top_k": _whole,
    "compare_with": _runs,
    "debugging_mode": truth,
    "analogy_function": _function,
    "result_directory_path": _folder,
    "protocol": _one_of(PROTOCOLS),
    "gold_directory_path": _folder,
    "datasets": gold_names,
    "missing_related": _one_of(TAILS),
    "workers": _whole,
    "result_name": _component,
}


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,;]+", text.strip()) if word]
