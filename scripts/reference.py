"""Write docs/reference.md: every public name with its signature, types and parameter docs.

python scripts/reference.py
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import karat
import karat.testing

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
HEAD = """# Python reference

The names of `karat`, those of its packages, and `karat.testing`, with signature, types and
parameters. `python scripts/reference.py` makes the page from the docstrings;
`help(karat.evaluate)` prints the same text.
"""
CHECKS = ("check_corruption", "check_metric", "check_model")
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Notes", "Examples")


def main() -> str:
    """Return the page."""
    listed = {*karat.__all__}
    names = [(name, getattr(karat, name)) for name in karat.importable_names()]
    public = [each for each in names if each[0] in listed]
    more = [each for each in names if each[0] not in listed]
    checks = [(f"testing.{name}", getattr(karat.testing, name)) for name in CHECKS]
    groups = {
        "Functions": [each for each in public if _is_function(each[1])],
        "Classes": [each for each in public if _is_record(each[1])],
        "Exceptions": [each for each in names if _is_error(each[1])],
        "More functions": [each for each in more if _is_function(each[1])],
        "More classes": [each for each in more if _is_record(each[1])],
        "Contract checks": checks,
    }
    parts = [HEAD]
    for title, members in groups.items():
        parts.append(f"\n## {title}\n")
        for name, member in members:
            parts.append(f"\n### {name}\n\n{_entry(f'karat.{name}', member)}\n")
    return "".join(parts)


def _is_error(member: object) -> bool:
    return inspect.isclass(member) and issubclass(member, BaseException)


def _is_record(member: object) -> bool:
    return inspect.isclass(member) and not _is_error(member)


def _is_function(member: object) -> bool:
    return not inspect.isclass(member)


def _entry(path: str, member: object) -> str:
    parts = [_docstring(member)]
    if not _is_error(member):
        parts.insert(0, f"```text\n{path}{_signature(member)}\n```")
    if _is_record(member):
        parts += [line for line in [_members(member)] if line]
    return "\n\n".join(parts)


def _signature(member: object, method: bool = False) -> str:
    """Return a signature as the source has it, one parameter per line where it is long."""
    try:
        signature = inspect.signature(member)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"
    if inspect.isclass(member):
        signature = signature.replace(return_annotation=signature.empty)
    parameters = list(signature.parameters.values())[1 if method else 0 :]
    signature = signature.replace(parameters=parameters)
    text = re.sub(r"(?<=[:>] )'([^']*)'", r"\1", str(signature))
    text = re.sub(r"<function (\w+)[^>]*>|<factory>", r"\1", text)
    if len(text) < 80:
        return text
    inner, _, result = text[1:].rpartition(")")
    pieces, depth, start = [], 0, 0
    for place, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            pieces.append(inner[start:place].strip())
            start = place + 1
    pieces.append(inner[start:].strip())
    return "(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){result}"


def _members(member: type) -> str:
    """Return the public methods and properties of a class as a list."""
    lines = []
    fields = (
        {f.name for f in dataclasses.fields(member)} if dataclasses.is_dataclass(member) else ()
    )
    for name, value in vars(member).items():
        if name.startswith("_") or name in fields:
            continue
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not (callable(plain) or isinstance(plain, property) or hasattr(plain, "func")):
            continue
        text = (inspect.getdoc(plain) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
        called = ""
        if inspect.isfunction(plain):
            called = " ".join(_signature(plain, not isinstance(value, staticmethod)).split())
        lines.append(f"- `{name}{called}`: {text}")
    return "\n".join(lines)


def _docstring(member: object) -> str:
    """Return a docstring as Markdown: numpydoc sections as lists, examples as code."""
    lines = (inspect.getdoc(member) or "").replace("``", "`").splitlines()
    made: list[str] = []
    section, code = "", False
    for place, line in enumerate(lines):
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if line.strip() in SECTIONS and set(below) == {"-"}:
            section = line.strip()
            made += ["", f"**{section}**", ""]
        elif set(line) == {"-"} and lines[place - 1].strip() in SECTIONS:
            continue
        elif line.startswith(">>> ") and not code:
            made += ["", "```pycon", line]
            code = True
        elif code:
            if not line.strip():
                made += ["```", ""]
                code = False
            else:
                made.append(line)
        elif section in ("Parameters", "Attributes", "Raises", "Returns", "Yields", "Warns"):
            made.append(_item(line))
        else:
            made.append(line)
    text = "\n".join([*made, "```"] if code else made)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _item(line: str) -> str:
    """Return a line of a parameter list: a name with its type, or the text about it."""
    if not line.strip() or line.startswith(" "):
        return f"  {line.strip()}" if line.strip() else ""
    name, _, kind = line.partition(" : ")
    return f"- `{name.strip()}`" + (f" ({kind.strip()})" if kind else "") + "<br>"


if __name__ == "__main__":
    PAGE.write_text(main(), encoding="utf-8")
