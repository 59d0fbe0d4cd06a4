"""One type of table, for the terminal, LaTeX and the page; CSV files that spreadsheets can open."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$", "−": "$-$",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """What a table shows in one place.

    Attributes:
        text: in every format. note: smaller and below it; in brackets in plain text, but for a
            row's first cell.
        style: "gain", "loss" or "unsure" colours it; of a row's first cell it is that of the row.
        strong: in bold. marks: ▲, ▼ and letters, raised behind it.
        span: low, middle and high end of an interval, drawn below the text, as shares in [-1, 1]
            of the largest value of the column.
    """

    text: str
    note: str = ""
    style: str = ""
    strong: bool = False
    marks: str = ""
    span: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Column:
    """A heading; numbers stand to the right. ``href``: what it links to on the page."""

    title: str
    number: bool = True
    href: str = ""


Columns: TypeAlias = Sequence[Column | str]
Rows: TypeAlias = Sequence[Sequence[Cell | str]]


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings.

    Attributes:
        name: what is shown, short. caption: what a reader must know of it.
        columns: a plain text is the heading of numbers; the first column names the rows.
        rows: as many cells each as there are columns; a plain text is a cell.
        style: classes of the page's style sheet.
    """

    name: str
    columns: Columns
    rows: Rows
    caption: str = ""
    style: str = ""

    @property
    def headings(self) -> list[Column]:
        first, *rest = self.columns
        heads = [Column(first, number=False) if isinstance(first, str) else first]
        return heads + [Column(c) if isinstance(c, str) else c for c in rest]

    @property
    def cells(self) -> list[list[Cell]]:
        return [[Cell(c) if isinstance(c, str) else c for c in row] for row in self.rows]

    @property
    def marks(self) -> list[int]:
        """The most marks of a cell, by column."""
        longest = [0] * len(self.columns)
        for row in self.cells:
            longest = [max(n, len(c.marks)) for n, c in zip(longest, row, strict=True)]
        return longest

    def text(self) -> str:
        """For the terminal."""
        heads, rows, marks = self.headings, self.cells, self.marks
        left = next((j for j, head in enumerate(heads) if head.number), len(heads))
        titles = [h.title + " " * (m + 1 if m else 0) for h, m in zip(heads, marks, strict=True)]
        shown = []
        for first, *others in rows:
            cells = [first.text, *(f"{c.text} ({c.note})" if c.note else c.text for c in others)]
            shown.append(
                [
                    text + (f" {cell.marks:<{m}}" if m else "")
                    for text, cell, m in zip(cells, (first, *others), marks, strict=True)
                ]
            )
        return aligned(titles, shown, left=left)

    def latex(self) -> str:
        """A ``table`` environment; it needs the packages ``booktabs`` and ``amssymb``."""
        heads = " & ".join(escaped(head.title) for head in self.headings)
        lines = [" & ".join(map(_latex_cell, row)) + r" \\" for row in self.cells]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{escaped(f'{self.name}. {self.caption}')}}}",
                rf"\begin{{tabular}}{{{''.join('r' if h.number else 'l' for h in self.headings)}}}",
                r"\toprule",
                heads + r" \\",
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def write_csv(frame: pd.DataFrame, path: Path, **options: Any) -> None:
    """Write a frame for spreadsheets: texts that they would run as formulas (those that begin with
    =, +, -, @, a tab or a line's end and are no numbers) get an apostrophe in front."""
    from pandas.api.types import is_numeric_dtype

    shown = frame.rename(columns=_harmless)
    for name, column in frame.items():
        if not is_numeric_dtype(column):
            shown[_harmless(name)] = column.astype(object).map(_harmless)
    shown.to_csv(path, index=False, **options)


def _harmless(content: Any) -> Any:
    if not isinstance(content, str) or not content.startswith(("=", "+", "-", "@", "\t", "\r")):
        return content
    try:
        float(content)
    except ValueError:
        return f"'{content}"
    return content


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Columns padded to their widest cell, the first ``left`` to the left, others to the right;
    a rule under the header."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[j]) for row in table) for j in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if j < left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([lines[0], "─" * (sum(widths) + 2 * (len(widths) - 1)), *lines[1:]])


def wrapped(text: str, width: int = WIDTH) -> str:
    """The text in lines of at most 100 characters, or of another width."""
    return textwrap.fill(text, width, subsequent_indent="  ") if text else ""


def escaped(text: str) -> str:
    """Text with LaTeX's special characters written out."""
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_cell(cell: Cell) -> str:
    """▲a▼b as one superscript."""
    text = rf"\textbf{{{escaped(cell.text)}}}" if cell.strong else escaped(cell.text)
    if not cell.marks:
        return text
    signs = {"▲": r"\blacktriangle ", "▼": r"\blacktriangledown "}
    marks = "".join(signs.get(c, rf"\mathrm{{{c}}}") for c in cell.marks)
    return f"{text}$^{{{marks}}}$"
