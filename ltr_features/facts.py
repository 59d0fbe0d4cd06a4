"""Facts on how something was made, for reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as text, without nesting: ``{"log": {"rows": 4000}}`` becomes ``{"log, rows":
    "4,000"}``, and of ``"periods": [{...}, {...}]`` the facts are called "period 1, ...", "period
    2, ...". Other lists become "43, 63", or "none"; other numbers have three decimals."""
    flat: dict[str, str] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}, {inner}": fact for inner, fact in flat_facts(value).items()}
        elif isinstance(value, (list, tuple)) and any(isinstance(v, Mapping) for v in value):
            one = name.removesuffix("s")
            flat |= flat_facts({f"{one} {n}": item for n, item in enumerate(value, start=1)})
        elif isinstance(value, (list, tuple)):
            separator = "; " if any("," in str(item) for item in value) else ", "
            flat[str(name)] = separator.join(map(str, value)) or "none"
        elif isinstance(value, float):
            flat[str(name)] = f"{value:.3f}"
        else:
            flat[str(name)] = f"{value:,}" if isinstance(value, int) else str(value)
    return flat
