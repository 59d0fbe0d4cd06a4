"""How long stages take: measured, kept in the output folder, and expected of those to come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from letor.files import atomic_path

#: The file of an output folder that has the clock times; no other file of a ranking run has any.
TIMES = "times.json"


@dataclass(frozen=True)
class Work:
    """What a stage has to do.

    Attributes:
        name: the stage. kind: stages of one kind take time in proportion to their amount.
        amount: of whatever the kind's time grows with.
    """

    name: str
    kind: str
    amount: float = 1.0


@dataclass(frozen=True)
class _Measured:
    kind: str
    amount: float
    seconds: float


class StageTimes:
    """Measured durations of stages.

    Args:
        path: file of the durations of earlier runs; read if it is there, written after each stage.
            None to keep nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._earlier = _read(path) if path is not None else {}
        self._now: dict[str, _Measured] = {}

    def add(self, work: Work, seconds: float) -> None:
        """Remember how long a stage took."""
        self._now[work.name] = _Measured(work.kind, work.amount, seconds)
        if self._path is None:
            return
        every = {name: asdict(one) for name, one in (self._earlier | self._now).items()}
        with atomic_path(self._path) as partial:
            partial.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")

    def expected(self, work: Work) -> float | None:
        """Seconds that a stage will take: as in an earlier run, else in proportion to the stages
        of its kind in this run, else in earlier ones; None if there is none."""
        same = self._earlier.get(work.name)
        if same is not None and same.kind == work.kind:
            return _scaled([same], work)
        for known in (self._now, self._earlier):
            alike = [one for one in list(known.values()) if one.kind == work.kind]
            seconds = _scaled(alike, work)
            if seconds is not None:
                return seconds
        return None


def _scaled(measured: Sequence[_Measured], work: Work) -> float | None:
    amount = sum(one.amount for one in measured)
    if not amount:
        return None
    return sum(one.seconds for one in measured) * work.amount / amount


def _read(path: Path) -> dict[str, _Measured]:
    """The durations of a file; none if it is not there, or says something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): _Measured(**one) for name, one in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
