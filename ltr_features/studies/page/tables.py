"""Tables for the terminal, LaTeX and the page; CSV files that are safe to open in spreadsheets."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.cells import cell_len

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100
#: Characters of a row's name in a line of a plain-text table.
NAMES = 48
#: Characters in a line of a paper in two columns, and in the lines of a long text in a table.
IN_COLUMN, IN_CELL = 50, 30
#: What the preamble of a paper with :meth:`Table.latex` needs.
LATEX_HEAD = (
    "% \\usepackage{array,booktabs,makecell,amssymb,adjustbox}\n"
    "% acmart and newtxmath have the signs of amssymb and stop at it: leave it out there\n"
    "% pdfLaTeX stops at letters that are not Latin: use LuaLaTeX and a font that has them\n"
)
_BROKEN = r">{\raggedright\arraybackslash}p{13em}"
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
    "[": "{[}", "*": "{*}",  # after a row's \\, bare ones would be taken as belonging to it
    "|": r"\textbar{}",  # a dash in LaTeX's first fonts
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$", "−": "$-$", "±": r"$\pm$", "–": "--",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """The content of one cell of a table.

    Attributes:
        text: shown in every format. note: shown smaller and below the text; in plain text in
            brackets, but omitted from a row's first cell.
        style: "gain", "loss" or "unsure" sets the colour; that of a first cell is the row's style.
        strong: whether the text is bold. marks: ▲, ▼ and letters, as a superscript.
        span: low end, middle and high end of an interval, drawn below the text, as shares in
            [-1, 1] of the largest value of the column.
    """

    text: str
    note: str = ""
    style: str = ""
    strong: bool = False
    marks: str = ""
    span: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Column:
    """A heading; ``number``: whether cells are right-aligned; ``href``: link target on the page."""

    title: str
    number: bool = True
    href: str = ""


Columns: TypeAlias = Sequence[Column | str]
Rows: TypeAlias = Sequence[Sequence[Cell | str]]


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings.

    Attributes:
        name: short description. caption: what a reader must know to interpret the table.
        columns: a string is the heading of numbers; the first column names the rows.
        rows: one cell per column each; a string is a cell without attributes.
        style: classes of the page's style sheet.
    """

    name: str
    columns: Columns
    rows: Rows
    caption: str = ""
    style: str = ""

    @cached_property
    def headings(self) -> list[Column]:
        first, *rest = self.columns
        heads = [Column(first, number=False) if isinstance(first, str) else first]
        return heads + [Column(c) if isinstance(c, str) else c for c in rest]

    @cached_property
    def cells(self) -> list[list[Cell]]:
        return [[Cell(c) if isinstance(c, str) else c for c in row] for row in self.rows]

    @property
    def full_caption(self) -> str:
        """The name and the caption as sentences."""
        end = "" if self.name.endswith((".", "?", "!")) else "."
        return f"{self.name}{end} {self.caption}".strip()

    @cached_property
    def marks(self) -> list[int]:
        """The largest number of marks in a cell of each column."""
        longest = [0] * len(self.columns)
        for row in self.cells:
            longest = [max(n, len(c.marks)) for n, c in zip(longest, row, strict=True)]
        return longest

    def text(self) -> str:
        """The table as plain text for the terminal, with long names of rows broken into lines."""
        heads, rows, marks = self.headings, self.cells, self.marks
        left = next((j for j, head in enumerate(heads) if head.number), len(heads))
        titles = [h.title + " " * (m + 1 if m else 0) for h, m in zip(heads, marks, strict=True)]
        shown = []
        for first, *others in rows:
            cells = [first.text, *(f"{c.text} ({c.note})" if c.note else c.text for c in others)]
            name, *rest = [
                text + (f" {cell.marks:<{m}}" if m else "")
                for text, cell, m in zip(cells, (first, *others), marks, strict=True)
            ]
            line, *further = textwrap.wrap(name, NAMES, subsequent_indent="  ") or [name]
            shown += [[line, *rest], *([more, *[""] * len(rest)] for more in further)]
        return aligned(titles, shown, left=left)

    def latex(self, label: str) -> str:
        """A LaTeX float, over both columns of a paper if it is wide; long texts are broken into
        lines, and what is still too wide is made smaller. Notes stand below the text of their
        cell, but that of a row's first cell, which is omitted. ``LATEX_HEAD`` names the packages.

        Args:
            label: for ``\\ref``, without ``tab:``.
        """
        heads = self.headings
        columns = [[row[j] for row in self.cells] for j in range(len(heads))]
        columns[0] = [replace(cell, note="") for cell in columns[0]]
        texts = [[head.title, *(text for c in cells for text in (c.text + c.marks, c.note))]
                 for head, cells in zip(heads, columns, strict=True)]  # fmt: skip
        longest = [max(map(cell_len, column)) for column in texts]
        forms = [
            "r" if head.number else "l" if n <= IN_CELL else _BROKEN
            for head, n in zip(heads, longest, strict=True)
        ]
        wide = sum(min(n, IN_CELL) + 2 for n in longest) > IN_COLUMN
        name = "table*" if wide else "table"
        rows = zip(*map(_latex_cells, heads, columns), strict=True)
        return "\n".join(
            [
                rf"\begin{{{name}}}",
                r"\centering",
                rf"\caption{{{escaped(self.full_caption)}}}",
                rf"\label{{tab:{label}}}",
                r"\begin{adjustbox}{max width=\linewidth}",
                rf"\begin{{tabular}}{{{''.join(forms)}}}",
                r"\toprule",
                " & ".join(escaped(head.title) for head in heads) + r" \\",
                r"\midrule",
                *(" & ".join(row) + r" \\" for row in rows),
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{adjustbox}",
                rf"\end{{{name}}}",
                "",
            ]
        )


def write_csv(frame: pd.DataFrame, path: Path, **options: Any) -> None:
    """Write a CSV file that is safe for spreadsheets: strings that they would run as formulas (no
    numbers, but beginning with =, +, -, @, tab or carriage return) get a leading apostrophe."""
    from pandas.api.types import is_numeric_dtype

    shown = frame.rename(columns=_harmless)
    for name, column in frame.items():
        if not is_numeric_dtype(column):
            shown[_harmless(name)] = column.astype(object).map(_harmless)
    shown.to_csv(path, index=False, lineterminator="\n", **options)


def _harmless(content: Any) -> Any:
    if not isinstance(content, str) or not content.startswith(("=", "+", "-", "@", "\t", "\r")):
        return content
    try:
        float(content)
    except ValueError:
        return f"'{content}"
    return content


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A plain-text table with a rule under the header; the first ``left`` columns are left-aligned,
    the others right-aligned, by the places that characters take on a terminal."""
    table = [list(header), *map(list, rows)]
    widths = [max(cell_len(row[j]) for row in table) for j in range(len(header))]

    def padded(j: int, cell: str) -> str:
        blanks = " " * (widths[j] - cell_len(cell))
        return cell + blanks if j < left else blanks + cell

    lines = ["  ".join(padded(j, cell) for j, cell in enumerate(row)).rstrip() for row in table]
    return "\n".join([lines[0], "─" * (sum(widths) + 2 * (len(widths) - 1)), *lines[1:]])


def wrapped(text: str, width: int = WIDTH) -> str:
    """The text in lines of at most ``width`` characters."""
    return textwrap.fill(text, width, subsequent_indent="  ") if text else ""


def escaped(text: str) -> str:
    """Text with LaTeX's special characters written out."""
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_cells(head: Column, cells: Sequence[Cell]) -> list[str]:
    """The cells of a column as LaTeX, with their marks, e.g. ▲a▼b, as one superscript. Bold is only
    what stands out among them."""
    bold, side = not all(cell.strong for cell in cells), "r" if head.number else "l"
    signs = {"▲": r"\blacktriangle ", "▼": r"\blacktriangledown "}
    shown = []
    for cell in cells:
        text = escaped(cell.text)
        if cell.strong and bold:
            text = rf"\textbf{{{text}}}"
        if cell.marks:
            marks = "".join(signs.get(c, rf"\mathrm{{{c}}}") for c in cell.marks)
            text += f"$^{{{marks}}}$"
        if cell.note:
            text = rf"\makecell[t{side}]{{{text}\\\footnotesize {escaped(cell.note)}}}"
        shown.append(text)
    return shown
