"""Tables that the documentation takes from the program itself: ``{{ columns }}`` and the like."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in the tables of a page; called by the documentation's builder."""
    for name, make in TABLES.items():
        mark = "{{ " + name + " }}"
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown


def columns() -> str:
    """Every column of every family."""
    from ltr_features.columns.registry import column_table, families, get_family

    parts = []
    for name in families():
        family = get_family(name)
        rows = [
            [r["letor_id"], f"`{r['name']}`", r["stream"], r["unit"], r["range"], r["description"]]
            for r in column_table(family)
        ]
        header = ["id", "name", "stream", "unit", "range", "definition"]
        parts.append(f"## {name}\n\n{family.description} ({family.reference}).\n\n")
        parts.append(_table(header, rows) + "\n\n")
    return "".join(parts)


def models() -> str:
    """Every matching model."""
    from ssi_models.registry import MODELS

    rows = [
        [f"`{kind.name}`", kind.__name__, kind.inputs, kind.learns_from, _summary(kind)]
        for kind in MODELS.values()
    ]
    return _table(["name", "class", "matrices", "learns from", "what it is"], rows)


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


def _summary(kind: type) -> str:
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


TABLES: dict[str, Callable[[], str]] = {
    "columns": columns,
    "models": models,
    "rankers": rankers,
    "measures": measures,
}
