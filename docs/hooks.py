"""What the documentation takes from the program itself, ``{{ columns }}`` and the like, and its
equations, which need no script: MathML."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Callable, Iterable

#: Equations as ``pymdownx.arithmatex`` leaves them.
_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)
#: References of docstrings to other objects.
_REFERENCE = re.compile(r":(?:class|func|meth|attr|mod|data):<code>(?:[\w.~]*\.)?(\w+)</code>")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in what a page has from the program; called by the documentation's builder."""
    for name, make in TABLES.items():
        mark = "{{ " + name + " }}"
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown


def on_page_content(content: str, **_: object) -> str:
    """Set the equations of a page; called by the documentation's builder."""
    return _EQUATION.sub(_equation, _REFERENCE.sub(r"<code>\1</code>", content))


def _equation(found: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    display = "inline" if found[2] == "(" else "block"
    return str(convert(html.unescape(found[3]), display=display))


def columns() -> str:
    """Every column of every family."""
    from ltr_features.columns.registry import column_table, families, get_family

    parts = []
    for name in families():
        family = get_family(name)
        rows = [
            [r["letor_id"], f"`{r['name']}`", _told(r["description"], r["unit"], r["range"])]
            for r in column_table(family)
        ]
        header = ["id", "name", "definition; unit and range"]
        parts.append(f"## {name}\n\n{family.description} ({family.reference}).\n\n")
        parts.append(_table(header, rows) + "\n\n")
    return "".join(parts)


def models() -> str:
    """Every matching model."""
    from ssi_models.registry import MODELS

    rows = [
        [
            f"`{kind.name}`",
            _told(_summary(kind), kind.__name__, f"learns from {kind.learns_from}", kind.inputs),
        ]
        for kind in MODELS.values()
    ]
    return _table(["name", "what it is; class, what it learns from, matrices"], rows)


def rankers() -> str:
    """Every ranker."""
    from letor.rankers.registry import get_ranker, ranker_names

    rows = [[f"`{name}`", _summary(get_ranker(name))] for name in ranker_names()]
    return _table(["name", "what it is"], rows)


def measures() -> str:
    """The definitions in use of the same measures."""
    from letor.measures import conventions

    rows = [[d.name, d.known_as, d.definition] for d in conventions()]
    return _table(["measure", "known as", "definition"], rows)


def family_classes() -> str:
    """Where the class of every column family is described."""
    from ltr_features.columns.registry import families

    return _described(families().values())


def ranker_classes() -> str:
    """Where the class of every ranker is described."""
    from letor.rankers.registry import get_ranker, ranker_names

    return _described(map(get_ranker, ranker_names()))


def model_classes() -> str:
    """Where the class of every matching model is described."""
    from ssi_models.registry import MODELS

    return _described(MODELS.values())


def _described(kinds: Iterable[type]) -> str:
    """The classes without their methods, which are those of the base class."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return "".join(f"::: {name}\n    options: {{ members: false }}\n\n" for name in names)


def _summary(kind: type) -> str:
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())


def _told(text: str, *facts: str) -> str:
    """A cell of two lines, so that a table has few columns and fits a phone."""
    return f"{text}<br><small>{'; '.join(filter(None, facts))}</small>"


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


TABLES: dict[str, Callable[[], str]] = {
    "columns": columns,
    "models": models,
    "rankers": rankers,
    "measures": measures,
    "family classes": family_classes,
    "ranker classes": ranker_classes,
    "model classes": model_classes,
}
