"""Experiment files: TOML, typed as a whole; and what all kinds do with them."""

from __future__ import annotations

import difflib
import inspect
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import Terms
from ssi_models.registry import find_model


class Section(BaseModel):
    """A section of an experiment file; keys that it does not know are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    path = Path(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def read_config(path: str | os.PathLike[str], kind: type[Config]) -> Config:
    """A TOML file as a typed description.

    Raises:
        InputError: as :func:`read_toml`; or unknown keys, missing keys, values out of range: all
            at once.
    """
    try:
        return kind.model_validate(read_toml(path))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in e['loc']) or 'file'}: {e['msg']}"
            for e in error.errors()
        )

    def _each(self, pair: tuple[str, str]) -> Iterator[tuple[str, str]]:
        """A comparison, for every ranker of its two systems."""
        rankers = {s.name: s.rankers for s in self.systems}
        of = [rankers.get(name, ()) for name in pair]
        if not any(of):
            yield pair
            return
        if all(of):
            common = [ranker for ranker in of[0] if ranker in of[1]]
        else:
            common = list(of[0] or of[1])
        for ranker in common:
            left, right = (
                f"{name}, {ranker}" if own else name for name, own in zip(pair, of, strict=True)
            )
            yield left, right

    def fits_of(self, system: SystemConfig) -> int:
        """How often a system is fitted; 0 where nothing learns from judgements."""
        if system.score is not None and system.score not in self._learned:
            return 0
        return system.repeats or self.repeats

    @property
    def _learned(self) -> set[str]:
        """The columns of models that learn from judgements."""
        kinds = {m.name: find_model(m.model) for m in self.models}
        return {name for name, kind in kinds.items() if kind and kind.learns_from != "documents"}

    def ranker_of(self, system: SystemConfig) -> RankerConfig | None:
        """The ranker of a system; None for a score, and for a ranker that is not described."""
        if system.score is not None:
            return None
        if system.ranker is None:
            return self.rankers[0] if self.rankers else None
        return next((r for r in self.rankers if r.name == system.ranker), None)


def nearest(name: str, known: Iterable[str]) -> str:
    """What may have been meant, as the end of a message."""
    known = [str(k) for k in known]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    if any("," in k for k in known):
        known = [repr(k) for k in known]
    return f"there are {', '.join(known)}" if known else "there are none"


def refitted(made: Callable[..., Any], params: Mapping[str, Any], fit: int) -> dict[str, Any]:
    """The parameters of a model or ranker in one of several fits: the fit's number, from 0, is
    added to the seed, if there is one. Models that learn from documents alone are the same in
    every fit."""
    seed = inspect.signature(made).parameters.get("seed")
    if not fit or seed is None or getattr(made, "learns_from", "") == "documents":
        return dict(params)
    return {**params, "seed": params.get("seed", seed.default) + fit}


def slug(name: str) -> str:
    """A system's name as a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
