"""The times of a click log or of queries: dates, or numbers in a unit that their size tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.clicks.tables import Kind, numbers
from ltr_features.sources.table_blocks import Block, ColumnName, texts

#: How many of a unit are a second.
_PER_SECOND = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
_UNITS = "seconds, milliseconds, microseconds or nanoseconds since 1970"
#: 1990 and 2100, in seconds since 1970.
_EARLIEST, _LATEST = 631_152_000, 4_102_444_800
_YEAR_1 = -62_135_596_800  # the first day that is shown as one


class Time(NamedTuple):
    """A time as it was given.

    Attributes:
        number: the number; of a date, seconds since 1970; NaN for a text that is no time.
        unit: "date" (ISO 8601), "seconds", "milliseconds", "microseconds" or "nanoseconds" (since
            1970), or "" for a plain number, which is not between 1990 and 2100 in any of these.
    """

    number: float
    unit: str

    @property
    def scale(self) -> float:
        """How many of its unit are a second; 1 for dates and plain numbers."""
        return _PER_SECOND.get(self.unit, 1.0)

    @property
    def seconds(self) -> float:
        """Seconds since 1970; a plain number as it is."""
        return self.number / self.scale


def time_of(text: str) -> Time:
    """Parse a time: ISO 8601 (UTC by default), or a number. Its unit is the one in which it lies
    between 1990 and 2100; no number does so in two units."""
    try:
        number = float(text)
    except ValueError:
        return _date(text)
    for unit, per_second in _PER_SECOND.items():
        if _EARLIEST <= number / per_second < _LATEST:
            return Time(number, unit)
    return Time(number, "")


def span_text(seconds: NDArray[np.float64]) -> str:
    """The first and last of some times in seconds, or of plain numbers: "2026-01-05 to 2026-06-28",
    "1 to 6", "4" if they are the same."""
    ends = [float(seconds.min()), float(seconds.max())]
    if ends[0] >= _YEAR_1 and _EARLIEST <= ends[1] < _LATEST:
        days = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=end) for end in ends]
        shown = [f"{day:%Y-%m-%d}" for day in days]
    else:
        shown = [f"{end:.15g}" for end in ends]
    return " to ".join(dict.fromkeys(shown))


def _date(text: str) -> Time:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return Time(float("nan"), "")
    return Time((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), "date")


#: Times as numbers or in ISO 8601.
TIMES = Kind(lambda text: time_of(text).seconds, "neither a number nor a time (ISO 8601)")


class LogTimes:
    """The times of one log, and the rules ``since`` and ``until`` for them.

    Dates and numbers since 1970 can be compared with each other, plain numbers only with numbers
    that are plain or in seconds. If there is a rule, this is checked, and that the log's times have
    one unit.
    """

    def __init__(self, since: Any, until: Any) -> None:
        rules = {"since": since, "until": until}
        self._rules = {k: (v, time_of(str(v))) for k, v in rules.items() if v is not None}
        self._first: Time | None = None

    @property
    def matter(self) -> bool:
        """Whether there is a rule."""
        return bool(self._rules)

    @property
    def facts(self) -> dict[str, str]:
        """For the description: the unit that was taken, unless it is seconds."""
        if not self._rules or self._first is None or self._first.scale == 1:
            return {}
        return {"times": f"{self._first.unit} since 1970, by their size"}

    @property
    def real(self) -> bool:
        """Whether the log's times are dates or numbers since 1970: they differ by seconds."""
        return self._first is not None and self._first.unit != ""

    def of(self, block: Block, column: ColumnName) -> NDArray[np.float64]:
        """float64 [n]: a column of times in seconds since 1970; plain numbers as they are.

        Raises:
            InputError: a value that is neither a number nor a time; see also :meth:`check`.
        """
        seconds = numbers(block, column, TIMES)
        values, index = texts(block, column)
        found = [time_of(value) for value in values]
        units = [time.unit for time in found]
        for place in sorted(map(units.index, set(units))):
            self.check(found[place], block.where(int(np.argmax(index == place))))
        return seconds

    def check(self, time: Time, where: str) -> None:
        """Check a time of the log, found at ``where``, by the rules and the times before it.

        Raises:
            InputError: it cannot be compared with a rule, or is in another unit.
        """
        for name, (given, rule) in self._rules.items():
            if bool(time.unit) == bool(rule.unit) or "seconds" in (time.unit, rule.unit):
                continue
            if rule.unit:
                raise InputError(
                    f"{where}: the time {time.number:.15g} is not between 1990 and 2100 in "
                    f"{_UNITS}, so it cannot be compared with {name}={given}; give {name} as a "
                    "number like those of the log, or correct the time"
                )
            raise InputError(
                f"{where}: the time is {_named(time.unit)}, but {name}={given} is neither a date "
                f"nor between 1990 and 2100 in {_UNITS}; give a date, like {name}=2026-06-01"
            )
        self._first = self._first or time
        if self._rules and time.scale != self._first.scale:
            raise InputError(
                f"{where}: the time is {_named(time.unit)}, but the first one of the log is "
                f"{_named(self._first.unit)}; since and until need one unit throughout the log"
            )

    def chosen(self, seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
        """bool [n]: for which times since <= time < until."""
        since, until = (self._rules.get(name) for name in ("since", "until"))
        late = seconds >= (-np.inf if since is None else since[1].seconds)
        return late & (seconds < (np.inf if until is None else until[1].seconds))


def _named(unit: str) -> str:
    return {"": "a plain number", "date": "a date"}.get(unit, f"in {unit} since 1970")
