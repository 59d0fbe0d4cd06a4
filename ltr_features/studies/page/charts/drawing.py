"""Charts drawn by matplotlib, as SVG in the page and as SVG and PDF files.

Charts are as wide as a phone's screen, so that their text is readable there; they are enlarged on
a desktop.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from ltr_base.names import clipped
from ltr_base.quiet import ignored
from ltr_features.studies.page.verdicts import minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 420.0
"""Width of every chart, in points."""
PALETTE = {
    "ink": ("#1b2430", "#e6e9ed"), "muted": ("#596472", "#a3adb8"), "rule": ("#d8dde4", "#36404b"),
    "unsure": ("#737d89", "#98a2ad"), "loss-text": ("#b04a00", "#f29b62"),
    "gain": ("#0072b2", "#4ba6dd"), "loss": ("#d55e00", "#ef8b4b"),
    "c0": ("#0072b2", "#4ba6dd"), "c1": ("#e69f00", "#e69f00"), "c2": ("#009e73", "#2fbf94"),
    "c3": ("#cc79a7", "#dc94bd"), "c4": ("#56b4e9", "#a9dcfb"), "c5": ("#d55e00", "#ef8b4b"),
    "c6": ("#7a7f87", "#9aa0a8"), "c7": ("#b3a100", "#d8c733"), "c8": ("#882255", "#c9548f"),
    "c9": ("#44aa99", "#7fd6c8"), "c10": ("#5b4bb5", "#9a8cf0"), "c11": ("#8a4b2a", "#b9764f"),
}  # fmt: skip
"""Light and dark colour by name: CSS variables of the page. c0 to c11 distinguish families."""
FAMILY_COLOURS = [name for name in PALETTE if re.fullmatch(r"c\d+", name)]
HEX = {name: light for name, (light, _) in PALETTE.items()}
_NAMES = {light: name for name, light in reversed(HEX.items())}
_RC = {
    "svg.fonttype": "none", "svg.hashsalt": "ltr-features",
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3, the default
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "font.size": 10.0, "text.color": HEX["ink"], "text.parse_math": False,
    "axes.labelcolor": HEX["muted"], "axes.labelsize": 9.5, "axes.edgecolor": HEX["rule"],
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": HEX["rule"], "grid.linewidth": 0.75,
    "xtick.color": HEX["muted"], "ytick.color": HEX["muted"], "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5, "xtick.major.size": 0.0, "ytick.major.size": 0.0,
    "legend.frameon": False, "legend.fontsize": 9.5, "legend.borderaxespad": 0.0,
    "lines.linewidth": 1.75,
}  # fmt: skip
#: What XML cannot hold, not even as a reference: a title may have it, say from the text of a PDF.
_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_drawing = Lock()


#: File formats, and the metadata key of each for the creation time.
_DATES = {"svg": "Date", "pdf": "CreationDate"}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A chart and its text for screen readers.

    Attributes:
        title: what is shown. description: its main numbers. height: in points.
        paint: draws into an empty figure. ends: left and right end of the axes, as shares of the
            width.
    """

    title: str
    description: str
    height: float
    paint: Callable[[Figure], None]
    ends: tuple[float, float] = (0.0, 1.0)

    def svg(self, key: str) -> Markup:
        """SVG for the page, with the page's CSS variables as colours; ``key`` makes ids unique."""
        label = f'class="figure" aria-labelledby="{key}-t {key}-d"'
        return Markup(self._element(label, key, lambda name: f"var(--{name})"))

    def write(self, path: Path) -> None:
        """Write ``path`` with the suffixes ``.svg`` and ``.pdf``; the bytes are reproducible."""
        label = (
            'xmlns="http://www.w3.org/2000/svg" font-family="DejaVu Sans, sans-serif" '
            'style="background: #fff"'
        )
        text = self._element(label, "figure", HEX.__getitem__) + "\n"
        path.with_name(path.name + ".svg").write_text(text, encoding="utf-8", newline="\n")
        path.with_name(path.name + ".pdf").write_bytes(self._saved("pdf"))

    def _element(self, label: str, key: str, colour: Callable[[str], str]) -> str:
        body = "".join(_markup(child, key, colour) for child in self._drawn)
        return (
            f'<svg {label} viewBox="0 0 {WIDTH:g} {self.height:g}" role="img">'
            f'<title id="{key}-t">{escape(_shown(self.title))}</title>'
            f'<desc id="{key}-d">{escape(_shown(self.description))}</desc>{body}</svg>'
        )

    @cached_property
    def _drawn(self) -> ElementTree.Element:
        return ElementTree.fromstring(_shown(self._saved("svg").decode("utf-8")))

    @cached_property
    def _figure(self) -> Figure:
        """Painted once for all formats, which takes as long as saving one of them."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH / 72, self.height / 72))
        self.paint(figure)
        for artist in figure.findobj():
            artist.set_clip_on(False)  # nothing is outside the axes, and clip paths need ids
        return figure

    def _saved(self, kind: str) -> bytes:
        buffer = io.BytesIO()
        # Viewers of SVG take other fonts for what the PDF lacks (see docs/experiments.md).
        with _settings(), ignored("Glyph |Matplotlib currently"):
            self._figure.savefig(buffer, format=kind, metadata={_DATES[kind]: None})
        return buffer.getvalue()


@contextmanager
def _settings() -> Iterator[None]:
    """Use our settings on top of matplotlib's defaults, ignoring a user's file; restored after.
    One thread at a time, as matplotlib's settings are the whole process's."""
    import matplotlib.style

    with _drawing, matplotlib.style.context(_RC, after_reset=True):
        yield


def _shown(text: str) -> str:
    """The text with a replacement character for each that XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _markup(element: ElementTree.Element, key: str, colour: Callable[[str], str]) -> str:
    """Matplotlib's SVG without metadata, style sheets, font names and unused ids, rounded to
    hundredths of points."""
    tag = element.tag.split("}")[1]
    if tag in ("metadata", "style"):
        return ""
    found = {name.split("}")[-1]: text for name, text in element.attrib.items()}
    inner = "".join(_markup(child, key, colour) for child in element)
    if tag == "g":
        return inner
    for name in ("d", "x", "y", "transform"):
        if name in found:
            found[name] = " ".join(re.sub(r"\d+\.\d+", _hundredths, found[name]).split())
    if "style" in found:
        style = re.sub(r"font-family:[^;]*;? ?", "", found["style"])
        found["style"] = re.sub(r"#[0-9a-f]{6}", lambda c: colour(_NAMES[c[0]]), style)
    if "id" in found:
        found["id"] = f"{key}-{found['id']}"
    if "href" in found:
        found["href"] = f"#{key}-{found['href'][1:]}"
    if found.get("transform", "").startswith("rotate(-0 "):
        del found["transform"]
    given = "".join(f' {name}="{escape(text)}"' for name, text in found.items())
    content = escape(element.text or "") if tag == "text" else ""
    return f"<{tag}{given}>{content}{inner}</{tag}>"


def _hundredths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def clipped_apart(contents: Sequence[str], length: int) -> list[str]:
    """The texts as :func:`clipped`; those that would become equal are cut in the middle instead."""
    half, cut = length // 2, [clipped(content, length) for content in contents]
    return [
        f"{content[: length - half - 1]}…{content[-half:]}"
        if short != content and cut.count(short) > 1
        else short
        for content, short in zip(contents, cut, strict=True)
    ]


def axes_in(figure: Figure, left: float, right: float, top: float, bottom: float) -> Axes:
    """Axes with margins in points."""
    width, height = (72 * size for size in figure.get_size_inches())
    return figure.add_axes(
        (left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height)
    )


def nice_ticks(axis: Any, *, sign: bool = False) -> None:
    """Set about five ticks, with signed labels if ``sign``."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    form = "+" if sign else ""
    axis.set_major_formatter(
        FuncFormatter(lambda x, _: "0" if abs(x) < 1e-12 else minus(f"{x:{form}.4g}"))
    )
