"""What the source of a collection tells users, by its description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ltr_base.names import in_words


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
