"""Self-contained HTML pages with one skeleton for all kinds of studies, and their plain text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from itertools import count
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ltr_features.studies.page.charts.drawing import FAMILY_COLOURS, PALETTE, Drawing
from ltr_features.studies.page.study_figures import dots
from ltr_features.studies.page.tables import LATEX_HEAD, Table, wrapped

#: Hebrew, Arabic and the other letters that are written from right to left, with their marks.
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
#: A name, or several words, of such letters. Within a word there may be a quotation mark, of an
#: abbreviation in Hebrew, or a mark that keeps letters apart, as in Persian, or joins them; a
#: number may end it, as of a version.
_WORD = f"[{_RIGHT_TO_LEFT}]+(?:[0-9]+(?:[.,][0-9]+)*)?"
_NAME = re.compile(f"{_WORD}(?:(?:[\\s'-]+|[\"\u200c\u200d]){_WORD})*")


@dataclass(frozen=True)
class Section:
    """A part of a study's page.

    Attributes:
        name: unique on the page. facts: a sentence on sizes.
        checks: sign and sentence of each expectation: ✓ met, (✓) met but not significantly,
            ≈ neither met nor contradicted significantly, ✗ not met. remarks: label and sentence.
        notes: sentences. figures: caption and drawing.
        folded: lines by heading; the page shows them collapsed at first.
    """

    name: str
    title: str
    facts: str = ""
    tables: Sequence[Table] = ()
    checks: Sequence[tuple[str, str]] = ()
    remarks: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    figures: Sequence[tuple[str, Drawing]] = ()
    folded: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """The content of a study's page, and its text for the terminal.

    Attributes:
        means: of the main ``measure`` by table and row, drawn in the overview chart, where a line
            marks the row ``baseline``.
        compared: another overview chart, with intervals of the differences from the baseline.
        notes: findings. definitions: of the content of the tables, by name.
        answer: one-sentence answer to the study's question, if not implied by the expectations.
        remarks: what a reader must know before relying on the answer.
    """

    title: str
    introduction: str
    sections: Sequence[Section]
    means: Mapping[str, Mapping[str, float]]
    measure: str
    baseline: str | None = None
    compared: Drawing | None = None
    notes: Sequence[str] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""
    remarks: Sequence[str] = ()

    @cached_property
    def overview(self) -> Drawing:
        """Chart of the means."""
        return self.compared or dots(self.means, self.measure, self.baseline)

    @property
    def verdict(self) -> str:
        """The answer, and how many of the expectations hold, if there are any."""
        signs = [sign for section in self.sections for sign, _ in section.checks]
        if not signs:
            return self.answer
        ties = signs.count("≈")
        tied = f" ({ties} more not contradicted)" if ties else ""
        unsure = signs.count("(✓)")
        unshown = f", {unsure} of them not significantly" if unsure else ""
        met = signs.count("✓") + unsure
        held = f"Expectations met: {met} of {len(signs)}{unshown}{tied}."
        return f"{self.answer} {held}" if self.answer else held

    def drawings(self) -> Iterator[tuple[str, Drawing]]:
        """All charts by file name: ``overview``, and ``NAME-1``, ``NAME-2`` ... of each section."""
        yield "overview", self.overview
        for section in self.sections:
            for number, (_, drawing) in enumerate(section.figures, 1):
                yield f"{section.name}-{number}", drawing

    def html(self) -> str:
        """The page as HTML."""
        return render("document.html.jinja", title=self.title, document=self)

    def text(self) -> str:
        """Tables, checks and notes as plain text."""
        parts = [self.title, *map(wrapped, (self.introduction, *self.notes))]
        parts += [wrapped(f"! {remark}") for remark in self.remarks]
        parts += [_section_text(section) for section in self.sections]
        parts.append("\n".join(wrapped(f"{n}: {text}") for n, text in self.definitions.items()))
        return "\n\n".join(part for part in parts if part) + "\n"

    def latex(self) -> str:
        """All tables as LaTeX."""
        tables = (
            table.latex(f"{section.name}-{number}")
            for section in self.sections
            for number, table in enumerate(section.tables, 1)
        )
        return LATEX_HEAD + "\n".join(tables)


def _section_text(section: Section) -> str:
    parts = [f"{section.title} [{section.name}]", wrapped(section.facts)]
    for table in section.tables:
        parts += [f"\n{table.name}", table.text(), wrapped(table.caption)]
    parts += [wrapped(f"{sign} {text}") for sign, text in section.checks]
    parts += [wrapped(f"{label}: {text}") for label, text in section.remarks]
    parts += map(wrapped, section.notes)
    for heading, lines in section.folded.items():
        parts += [heading, *(wrapped(f"  {line}") for line in lines)]
    return "\n".join(part for part in parts if part)


def render(template: str, **values: Any) -> str:
    """Render a page from a template. The same values give the same text: it has no time stamps or
    random ids. A variable that the template needs but does not get is an error."""
    environment = Environment(
        loader=PackageLoader("ltr_features.studies.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_isolated,
    )
    environment.filters["plain"] = _plain
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(1))
    environment.globals |= {
        "numbered": lambda kind: f"{kind} {next(numbers[kind])}",  # in order of appearance
        "colours": _colours(),
        "style": _source("style.css"),
        "script": Markup("\n").join(map(_source, ("rankings.js", "embedding_map.js", "script.js"))),
    }
    return environment.get_template(template).render(**values)


def _isolated(value: Any) -> Any:
    """What a page shows of a value: a text in which names that are written from right to left stand
    between isolating characters, as they would turn the numbers and signs beside them, too.

    ``<bdi>`` would do the same, but has no place in attributes and options.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _NAME.sub("\u2068\\g<0>\u2069", value)


def _colours() -> Markup:
    """The palette as CSS: variables for light and dark mode, and a class per family colour."""
    light = "".join(f"--{name}: {light};" for name, (light, _) in PALETTE.items())
    both = "".join(f"--{name}: light-dark({a}, {b});" for name, (a, b) in PALETTE.items())
    families = "".join(f".{name} {{ background: var(--{name}); }}" for name in FAMILY_COLOURS)
    supported = "@supports (color: light-dark(#000, #fff))"
    return Markup(f":root {{ {light} }}\n{supported} {{ :root {{ {both} }} }}\n{families}")


def _source(name: str) -> Markup:
    folder = resources.files("ltr_features.studies.page") / "templates"
    return Markup((folder / name).read_text("utf-8"))


def _plain(setting: Any, between: str = ", ") -> str:
    """A setting in words: lists without brackets, "none", "yes" and "no" for Python's constants."""
    if isinstance(setting, list | tuple):
        return between.join(_plain(one, " / ") for one in setting) or "none"
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    return "none" if setting is None else str(setting)
