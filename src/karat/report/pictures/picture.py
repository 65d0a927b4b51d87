"""Picture: a figure that a notebook shows, saved as SVG, PDF or PNG with the same bytes always."""

from __future__ import annotations

import base64
import contextlib
import html
import io
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.errors import DefinitionError, MissingExtra, did_you_mean
from karat.report.notes import short
from karat.results.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: what a file's name ends in, and what would tell the time or the machine in it
FORMATS: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
#: told apart by people who see few colours, and in print (Okabe and Ito)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
DASHES = ("-", "--", "-.", ":")
FAINT = "#9A9A9A"
#: how wide a picture is, in inches: the text of a page
WIDTH = 7.0
#: dots per inch of a PNG
DPI = 200
_SETTINGS: Any = {
    "svg.hashsalt": "karat",
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,  # fonts are embedded whole, as publishers ask for
    "text.parse_math": False,  # a dollar in a name begins no formula
    "axes.unicode_minus": False,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


class Picture:
    """A drawn figure. A notebook shows it; ``save`` writes it; ``figure`` is matplotlib's own."""

    def __init__(self, figure: Figure, title: str = "") -> None:
        self.figure = figure
        self.title = title
        self._laid_out = False

    def __repr__(self) -> str:
        return f"<Picture {self.title}>"

    def save(self, path: str | Path) -> Path:
        """Write the picture in the format that the name ends in, and return the file."""
        file = Path(path)
        shape = file.suffix.lower().removeprefix(".")
        write_atomic(file, self.to_bytes(shape))
        return file

    def to_bytes(self, shape: str) -> bytes:
        """Return the picture as "svg", "pdf" or "png": the same scores make the same bytes."""
        check_format(shape)
        hidden: Any = FORMATS[shape]
        file = io.BytesIO()
        with settings():
            if not self._laid_out:
                # once: another turn would move things by a hair, and change the bytes
                self.figure.draw_without_rendering()
                self.figure.set_layout_engine("none")
                self._laid_out = True
            self.figure.savefig(file, format=shape, dpi=DPI, bbox_inches="tight", metadata=hidden)
        return file.getvalue()

    def _repr_svg_(self) -> str:
        return self.to_bytes("svg").decode("utf-8")

    def _repr_html_(self) -> str:
        # an image of its own: what is named inside meets nothing of the page
        data = base64.b64encode(self.to_bytes("svg")).decode("ascii")
        title = html.escape(short(self.title, 200))
        return f'<img alt="{title}" src="data:image/svg+xml;base64,{data}">'


def check_format(shape: str) -> None:
    """Tell which formats there are, if this is none."""
    if shape not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        given = f'".{shape}"' if shape else "without an ending"
        raise DefinitionError(f"a picture is {known}, not {given}.{did_you_mean(shape, FORMATS)}")


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """Draw with our settings, whatever the caller's are, and leave those as they were."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots") from error
    with matplotlib.rc_context(), warnings.catch_warnings():
        # a sign that a font lacks is a box there, and whole in the text of an SVG
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def figure_of(rows: int = 1, columns: int = 1, *, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure without a window, and its axes: rows × columns."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def said(name: object, width: int = 32) -> str:
    """Return a name as it is written in a picture: one line, and not too long."""
    text = short(name, width)
    # a legend leaves out what begins with an underscore
    return f" {text}" if text.startswith("_") else text


def name_rows(axes: Axes, names: list[str]) -> None:
    """Name the rows of a picture from top to bottom; where they are many, only some."""
    step = -(-len(names) // 60)
    places = range(0, len(names), step)
    size = 8 if len(names) <= 40 else 6
    axes.set_yticks(list(places), [said(names[i]) for i in places], fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def style_of(place: int) -> tuple[str, str]:
    """Return colour and dash of the line of a model at this place."""
    return COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]


def tell(figure: Figure, *sentences: str) -> None:
    """Write below a picture what its reader must know."""
    text = " ".join(sentence for sentence in sentences if sentence)
    if text:
        lines = textwrap.fill(text, int(figure.get_figwidth() * 18))
        figure.supxlabel(lines, fontsize=7, color="#555555", ha="left", x=0.01)
