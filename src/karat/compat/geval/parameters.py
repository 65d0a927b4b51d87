"""GEval's parameters: checked before anything runs, from a call or from an XML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from xml.parsers import expat

from karat.errors import DataError, DefinitionError, did_you_mean
from karat.models.vector_file import FORMATS
from karat.probes.measures import Measure
from karat.registry import load_object

#: the tasks in the order they are run, and the short names the document has for them
TASKS = {
    "Classification": "Class",
    "Regression": "Reg",
    "Clustering": "Clu",
    "DocumentSimilarity": "DocSim",
    "EntityRelatedness": "EntRel",
    "SemanticAnalogies": "SemAn",
}
PROTOCOLS = ("corrected", "legacy")
ALL = "_all"
#: spellings of the document that its code does not have, and the other way round
SPELLINGS = {
    "vector_file": "vector_filename",
    "vectors_file": "vector_filename",
    "similarity_function": "similarity_metric",
    "result_directory": "result_directory_path",
    "gold_directory": "gold_directory_path",
}
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


@dataclass(frozen=True)
class Parameters:
    """What ``evaluate`` is asked to do; what is wrong with it is told at once, all together."""

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

    def checked(self) -> Parameters:
        """Return the same in one spelling, or raise with everything that is wrong."""
        mistakes: list[str] = []
        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, check in _CHECKS.items():
            try:
                given[name] = check(name, given[name])
            except DefinitionError as error:
                mistakes += error.messages
        if mistakes:
            raise DefinitionError(*mistakes)
        return Parameters(**given)


def from_xml(path: str | Path) -> Parameters:
    """Return the parameters of an XML file: ``<parameters>`` with one element for each."""
    given: dict[str, Any] = {}
    known = [field.name for field in fields(Parameters)]
    for tag, text, values in _elements(Path(path)):
        name = SPELLINGS.get(tag, tag)
        if name not in known:
            hint = did_you_mean(tag, [*known, *SPELLINGS])
            raise DefinitionError(f"{path}: there is no parameter <{tag}>.{hint}")
        if name in given:
            raise DefinitionError(f"{path}: <{tag}> stands twice.")
        listed = [value for value in values if value]
        if name in ("tasks", "compare_with"):
            given[name] = listed or _words(text) or ALL
        elif text:
            given[name] = text
    if "vector_filename" not in given:
        raise DefinitionError(f"{path}: <vector_filename> is missing: the file to evaluate.")
    return Parameters(**given)


def task_names(name: str, given: Any) -> list[str]:
    """Return the long names of tasks, in the order they are run.

    >>> task_names("tasks", ["SemAn", "Classification"])
    ['Classification', 'SemanticAnalogies']
    """
    wanted = _words(given) if isinstance(given, str) else [str(each) for each in given or ()]
    if not wanted:
        raise DefinitionError(f"{name} is empty: say {ALL}, or some of {', '.join(TASKS)}.")
    if ALL in wanted:
        return list(TASKS)
    spelled = {each.lower(): long for long, short in TASKS.items() for each in (long, short)}
    lost = [each for each in wanted if each.lower() not in spelled]
    if lost:
        both = [each for pair in TASKS.items() for each in pair]
        raise DefinitionError(
            *(
                f'there is no task "{each}".{did_you_mean(each, both)} There are: '
                f"{', '.join(f'{long} ({short})' for long, short in TASKS.items())}; or {ALL}."
                for each in lost
            )
        )
    chosen = {spelled[each.lower()] for each in wanted}
    return [long for long in TASKS if long in chosen]


def truth(name: str, given: Any) -> bool:
    """Return a boolean, of which "false" is one too.

    >>> truth("parallel", "False"), truth("parallel", True)
    (False, True)
    """
    text = str(given).strip().lower()
    if isinstance(given, bool | str | int) and text in (*_TRUE, *_FALSE):
        return text in _TRUE
    raise DefinitionError(f"{name} is true or false, not {given!r}.")


def _whole(name: str, given: Any) -> int | None:
    if given is None and name == "vector_size":
        return None
    text = str(given).strip()
    if isinstance(given, bool) or not re.fullmatch("[0-9]+", text) or int(text) < 1:
        raise DefinitionError(f"{name} is a whole number of 1 or more, not {given!r}.")
    return int(text)


def _file(name: str, given: Any) -> str:
    text = str(given or "")
    path = Path(text).expanduser()
    if not text or not path.is_file():
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() and text else []
        raise DefinitionError(
            f"{name}: there is no vector file {text or '(nothing was given)'}."
            f"{did_you_mean(path.name, near)}"
        )
    return text


def _one_of(known: Iterable[str]) -> Callable[[str, Any], str]:
    def check(name: str, given: Any) -> str:
        text = str(given).strip().lower()
        if text not in known:
            hint = did_you_mean(text, known)
            raise DefinitionError(f'{name} is one of {", ".join(known)}, not "{given}".{hint}')
        return text

    return check


def _measure(name: str, given: Any) -> Any:
    return Measure(given).given


def _function(name: str, given: Any) -> Any:
    found = load_object(given) if isinstance(given, str) and given else given
    if found is not None and not callable(found):
        raise DefinitionError(f"{name} is a function of three vectors, not {given!r}.")
    return given or None


def _folder(name: str, given: Any) -> str | None:
    if given is None:
        return None
    path = Path(given).expanduser()
    if name == "gold_directory_path" and not path.is_dir():
        raise DefinitionError(f"{name}: there is no folder {given}.")
    return str(path)


def _runs(name: str, given: Any) -> list[str]:
    if given is None:
        return [ALL]
    return [given] if isinstance(given, str) else [str(each) for each in given]


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "vector_filename": _file,
    "vector_file_format": _one_of(FORMATS),
    "vector_size": _whole,
    "parallel": truth,
    "tasks": task_names,
    "similarity_metric": _measure,
    "top_k": _whole,
    "compare_with": _runs,
    "debugging_mode": truth,
    "analogy_function": _function,
    "result_directory_path": _folder,
    "protocol": _one_of(PROTOCOLS),
    "gold_directory_path": _folder,
}


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,;]+", text.strip()) if word]


# -- XML ------------------------------------------------------------------------------------


def _elements(path: Path) -> list[tuple[str, str, list[str]]]:
    """Return tag, text and the texts of the values inside, for each element below the root."""
    reading = _Reading(path)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reading.refuse
    parser.StartElementHandler = reading.open
    parser.EndElementHandler = reading.close
    parser.CharacterDataHandler = reading.say
    try:
        parser.Parse(path.read_bytes(), True)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except expat.ExpatError as error:
        raise DataError(f"{path}: not a sound XML file: {error}.") from error
    return reading.found


class _Reading:
    """An XML file under way; it may have three levels and no document type."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[tuple[str, str, list[str]]] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self._values: list[str] = []

    def refuse(self, *_: Any) -> None:
        """Refuse a document type: entities can name other files and grow without end."""
        raise DataError(f"{self.path}: a parameter file has no document type (<!DOCTYPE …>).")

    def open(self, tag: str, _: Mapping[str, str]) -> None:
        """Begin an element."""
        if not self._open and tag != "parameters":
            raise DataError(f"{self.path}: the root is <{tag}>; it must be <parameters>.")
        if len(self._open) == 3:
            raise DataError(f"{self.path}: <{tag}> inside <{self._open[-1]}> means nothing here.")
        self._open.append(tag)
        self._texts.append("")
        if len(self._open) == 2:
            self._values = []

    def say(self, text: str) -> None:
        """Take text."""
        self._texts[-1] += text

    def close(self, tag: str) -> None:
        """End an element."""
        depth, text = len(self._open), self._texts.pop().strip()
        self._open.pop()
        if depth == 3:
            self._values.append(text)
        elif depth == 2:
            self.found.append((tag, text, self._values))
