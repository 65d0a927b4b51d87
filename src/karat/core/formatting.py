"""Names, numbers and tables as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.core.writing import write_output

if TYPE_CHECKING:
    import pandas as pd

#: maximum length of a name, and of an answer
NAME_WIDTH, ANSWER_WIDTH = 32, 24
#: from here on, numbers have an exponent
LARGE = 1e15


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "model"), count(1200, "model")
    ('1 model', '1,200 models')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def money(price: float | None) -> str:
    """Return a price with two decimals, or with two significant digits if it is small.

    >>> money(2.0), money(0.00123), money(0.0), money(None)
    ('$2.00', '$0.0012', '$0.00', '–')
    """
    if price is None or math.isnan(price):
        return "–"
    digits = 2 if price == 0 or price >= 0.1 else 1 - math.floor(math.log10(price))
    return f"${price:,.{digits}f}"


def plain(name: object) -> str:
    r"""Return a name on one line, without control characters.

    >>> plain("a\nb\x1b[1m")
    'a b�[1m'
    """
    line = " ".join(str(name).split())
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line)


def cut_text(text: str, width: int) -> str:
    """Return a text of at most some characters.

    >>> cut_text("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def short(name: object, width: int = NAME_WIDTH) -> str:
    """Return a name on one line, cut if it is long."""
    return cut_text(plain(name), width)


def middle_cut(name: str, width: int = NAME_WIDTH) -> str:
    """Return a name cut in the middle, because runs of one model differ at the end."""
    text, half = plain(name), width // 2
    return text if len(text) <= width else f"{text[: half - 1]}…{text[-half:]}"


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(0.0123), signed(-123.456), signed(0.0)
    ('+0.012', '-123.5', '0.000')
    """
    if math.isnan(value):
        return "–"
    text = rounded(abs(value))
    return text if not float(text.replace(",", "")) else f"{'-' if value < 0 else '+'}{text}"


def fixed(value: float, digits: int) -> str:
    """Return a value with some decimals, a half rounded up; zero has no sign.

    >>> fixed(1.25, 1), fixed(-0.0001, 3), fixed(1125000.0, 0)
    ('1.3', '0.000', '1,125,000')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else str(value)
    unit = Decimal(1).scaleb(-digits)
    number = Decimal(value).quantize(unit, ROUND_HALF_UP, Context(prec=400))
    return f"{number if number else abs(number):,}"


def rounded(value: float) -> str:
    """Return a value with three decimals, from 10 on with fewer: four digits, or a whole number.

    >>> rounded(0.12345), rounded(-8.4e-5), rounded(54.916), rounded(1125000.0), rounded(2e20)
    ('0.123', '0.000', '54.92', '1,125,000', '2.000e20')
    """
    size = abs(value)
    if LARGE <= size < math.inf:
        return f"{value:.3e}".replace("e+", "e")
    return fixed(value, 3 if size < 10 else 2 if size < 100 else 1 if size < 1000 else 0)


def format_rank(value: float | None) -> str:
    """Format a mean rank.

    >>> format_rank(1.25), format_rank(None)
    ('1.3', '–')
    """
    return "–" if value is None else fixed(value, 1)


def format_answer(value: Any) -> str:
    """Return a number, or a text cut in the middle, because ids differ at the end.

    >>> format_answer(0.12345), format_answer("http://dbpedia.org/resource/Canada")
    ('0.123', 'http://dbpe…ource/Canada')
    """
    return middle_cut(value, ANSWER_WIDTH) if isinstance(value, str) else rounded(float(value))


def format_p(p: float) -> str:
    """Return p with three decimals.

    >>> format_p(0.0301), format_p(0.00002), format_p(1.0)
    ('0.030', '< 0.001', '1.000')
    """
    return "–" if math.isnan(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def chance(p: float) -> str:
    """Return a probability estimated by sampling, which is never shown as 0 or 1.

    >>> chance(0.97), chance(1.0), chance(0.0)
    ('0.970', '> 0.999', '< 0.001')
    """
    return "> 0.999" if p > 0.9995 else format_p(p)


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent, with some decimals.

    >>> percent(0.1234), percent(0.5), percent(0.1234, 0)
    ('12.3 %', '50.0 %', '12 %')
    """
    return f"{100 * share:.{digits}f} %"


def short_percent(share: float) -> str:
    """Return a share in percent with one decimal, unless that is 0.

    >>> short_percent(0.1234), short_percent(0.5)
    ('12.3 %', '50 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def precise_percent(share: float) -> str:
    """Return a share in percent with up to four significant digits.

    >>> precise_percent(0.95), precise_percent(0.97875), precise_percent(1.0)
    ('95 %', '97.88 %', '100 %')
    """
    return f"{100 * share:.4g} %"


def rough_percent(share: float) -> str:
    """Return a share in percent with two significant digits.

    >>> rough_percent(0.123), rough_percent(0.00012)
    ('12 %', '0.012 %')
    """
    return f"{100 * share:.2g} %"


def percent_down(share: float) -> str:
    """Return a share in percent, rounded down, so that only 1 is 100 %.

    >>> percent_down(0.9999), percent_down(1.0)
    ('99.9 %', '100 %')
    """
    return "100 %" if share == 1 else f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"


def percent_chance(share: float) -> str:
    """Return a chance as a whole percentage, never 0 or 100.

    >>> percent_chance(0.344), percent_chance(0.001), percent_chance(float("nan"))
    ('34 %', '< 1 %', '–')
    """
    if math.isnan(share):
        return "–"
    if share < 0.005 or share > 0.995:
        return "< 1 %" if share < 0.5 else "> 99 %"
    return f"{fixed(100 * share, 0)} %"


def interval(value: float, low: float, high: float) -> str:
    """Return a difference with its interval, if it has one."""
    return signed(value) if math.isnan(low) else f"{signed(value)} [{signed(low)}, {signed(high)}]"


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table; missing and infinite values are None."""
    rows = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    return [
        {str(k): None if v in (math.inf, -math.inf) else v for k, v in row.items()} for row in rows
    ]


def dump_json(value: object) -> str:
    """Return indented JSON."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def duration(value: float) -> str:
    """Format a number of seconds.

    >>> duration(12.34), duration(600), duration(7260)
    ('12.3 s', '10.0 min', '2.0 h')
    """
    import pandas as pd  # not loaded by commands that print no table

    if pd.isna(value):
        return "–"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:,.1f} h"


def write_tables(folder: str | Path, prefix: str, tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write tables as ``prefix_name.csv`` into a folder, and return the files."""
    paths = [Path(folder) / f"{prefix}_{name}.csv" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        write_output(path, table.to_csv(index=False, lineterminator="\n"))
    return paths
