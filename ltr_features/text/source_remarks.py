"""What the source of a collection tells users, by its description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ltr_base.names import in_words

#: From these shares on, queries that seem to be made from the document of the same id, and texts
#: with HTML, are told of.
_MANY_OWN, _MUCH_HTML = 0.5, 0.05
_NOT_RANKED = ", which are not ranked for them"
_SAME_ID = 'index --sources same-id, or sources = "same-id" of an experiment'


def source_remarks(description: Mapping[str, Any]) -> list[str]:
    """Remarks of the source itself, on the periods of a click log, and on grades that a click model
    infers, as sentences without a full stop.

    Args:
        description: of a collection.
    """
    found = list(description.get("remarks", ()))
    periods: dict[str, list[str]] = {}
    for n, facts in enumerate(description.get("periods", ()), start=1):
        for text in facts["remarks"]:
            periods.setdefault(text, []).append(f"period {n}")
    found += [f"{in_words(those)} of the clicks: {text}" for text, those in periods.items()]
    if (click_model := description.get("click model")) is not None:
        found.append(
            f"grades are what the click model {click_model!r} infers from clicks: documents "
            "that users were not shown count as irrelevant, so measures favour rankings like "
            "the one that was shown; confirm a gain by ratings or an online experiment"
        )
    return found


def own_text_remarks(share: float, option: str = _SAME_ID) -> list[str]:
    """What to tell of the share of queries that seem to be made from the document of their id.

    Args:
        option: how it is said that they are.
    """
    if share < _MANY_OWN:
        return []
    return [
        f"{100 * share:.0f} % of the queries have the id of a document that has their text and is "
        "not judged relevant: it is ranked for them, as not relevant; if they were made from it, "
        f"leave it out by {option}"
    ]


def drawn_remark(drawn: int, n: int, of: str = "queries", known: str = _NOT_RANKED) -> str:
    """What to tell of queries that were made from documents: ``drawn`` of ``n``.

    Args:
        of: what they are called. known: a clause on these documents.
    """
    return (
        f"{drawn:,} of {n:,} {of} were drawn from documents of the collection{known}: models that "
        "learn from its texts have seen their words together, so the gain of such columns is "
        "overstated; draw queries from texts outside the collection"
    )


def html_remarks(documents: float, queries: float) -> list[str]:
    """What to tell of the shares of documents and queries that contain HTML."""
    counted = "contain HTML, whose tags and character references are counted as words"
    found = []
    if documents >= _MUCH_HTML:
        found.append(
            f"{100 * documents:.0f} % of the documents {counted}: strip them, by the option "
            "markup=strip of the sources table and clicks, or before indexing"
        )
    if queries >= _MUCH_HTML:
        found.append(
            f"{100 * queries:.0f} % of the queries {counted}: strip them before indexing, and new "
            "ones before a pipeline ranks for them"
        )
    return found
