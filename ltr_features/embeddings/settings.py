"""Settings for training word and document vectors; does not import gensim, which takes seconds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

from letor.errors import InputError

#: What columns of trained vectors were learned from, for their provenance.
TRAINED_ON = "text of all documents, no labels"


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training of vectors.

    Attributes:
        dimension: dimension of the vectors.
        epochs: passes over the texts.
        window: number of words on each side that skip-gram predicts (not for documents).
        min_count: words that occur less often are left out.
        negative: negative samples per prediction; 0 for hierarchical softmax.
        sample: gensim's threshold for dropping occurrences of frequent words; 0 drops none.
        seed: seed of everything random.

    Raises:
        InputError: a value is outside its range.
    """

    dimension: int = 100
    epochs: int = 10
    window: int = 5
    min_count: int = 2
    negative: int = 5
    sample: float = 1e-3
    seed: int = 1

    def __post_init__(self) -> None:
        least = {"dimension": 1, "epochs": 1, "window": 1, "min_count": 1}
        for part in fields(self):
            value, low = getattr(self, part.name), least.get(part.name, 0)
            high = 10_000 if part.name == "dimension" else 2**31 - 1
            if not isinstance(value, Real) or not low <= float(value) <= high:
                raise InputError(f"{part.name} must be a number in {low}..{high}, got {value!r}")

    @classmethod
    def of(cls, source: object) -> TrainingSettings:
        """The settings that another object has as attributes, and defaults for the rest."""
        names = [name for name in cls.names() if hasattr(source, name)]
        return cls(**{name: getattr(source, name) for name in names})

    @classmethod
    def names(cls) -> list[str]:
        """The names of all settings."""
        return [part.name for part in fields(cls)]

    def changed_from(self, other: TrainingSettings) -> list[str]:
        """The names of the settings that differ."""
        return [name for name in self.names() if getattr(self, name) != getattr(other, name)]

    def gensim_options(self) -> dict[str, Any]:
        return {
            "vector_size": self.dimension,
            "epochs": self.epochs,
            "min_count": self.min_count,
            "negative": self.negative,
            "hs": int(self.negative == 0),
            "sample": self.sample,
            "seed": self.seed,
            "workers": 1,
        }
