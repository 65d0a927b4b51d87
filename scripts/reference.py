"""Write docs/reference.md: every public name of the package, from its own docstring.

python scripts/reference.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

import karat

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
HEAD = """# Python

Every public name, made from the docstrings by `python scripts/reference.py`.
`help(karat.evaluate)` says more about each.
"""


def main() -> str:
    """Return the page."""
    parts = [HEAD]
    for name in karat.__all__:
        thing = getattr(karat, name)
        if name.startswith("__"):
            continue
        called = f"```text\nkarat.{name}{_signature(thing)}\n```"
        parts.append(f"\n## {name}\n\n{called}\n\n{_said(thing)}\n")
    return "".join(parts)


def _signature(thing: object) -> str:
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return ""
    signature = inspect.signature(thing)  # type: ignore[arg-type]
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    return text if len(text) < 90 else text.replace(", ", ",\n    ").replace("(", "(\n    ", 1)


def _said(thing: object) -> str:
    """Return what a docstring says before its sections and examples."""
    text = inspect.getdoc(thing) or ""
    lines: list[str] = []
    for line in text.splitlines():
        if line.strip() in ("Parameters", "Attributes", "Notes") or line.startswith(">>>"):
            break
        lines.append(line.replace("``", "`"))
    return "\n".join(lines).strip()


if __name__ == "__main__":
    PAGE.write_text(main(), encoding="utf-8")
