"""How much a column's models have to learn, which a user is told before they are fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltr_base.names import counted
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.learned import LearnedColumn
from ltr_features.text.index import WHOLE
from ssi_models.training.held_out import MANY_QUERIES, N_PARTS
from ssi_models.training.trainable import TrainableModel

#: Seconds on one core of a fit by pairs, for each word that an epoch reads and each number of its
#: embedding; what was measured (Cranfield, CISI, NFCorpus, 2,400 documents of 83 kB, and 67,000
#: rated products of seven words) is a third to three times as much, but for fits of seconds. Few
#: training queries try more rates, margins and forms, unless the first teach much: 375 queries with
#: 17 relevant documents each took a tenth.
_SECONDS, _SECONDS_FEW = 1e-7, 4e-7
#: Words that take as long as comparing a pair with the negatives of its batch.
_PAIR_WORDS = 25
#: Epochs that most trainings end within.
_EPOCHS = 25
#: Seconds on one core, or where they are unknown words of an epoch, from which on a fit takes long.
_LONG, _MANY_WORDS = 300.0, 1e7
#: Words of a long document that are enough, for advice.
FEW_WORDS = 200
_SUMMARY = "index a summary as a field"
#: Embeddings of models without a parameter ``rank``.
_RANK = 100


@dataclass(frozen=True)
class FitSize:
    """What the models of a column have to learn.

    Attributes:
        n_models, n_folds: number of models, and of the folds that they are for.
        n_pairs: relevant pairs that the model with most of them learns from.
        words: words that an epoch of all models reads.
        by_document, by_query: mean number of different words of a relevant document, and of a
            query.
        shorter: mean number of different words of the fields that have at most half as many as the
            one that the models read, by name, longest first.
        can_keep_fewer: whether :attr:`.LearnedColumn.heaviest` can leave half of a document's words
            and still enough.
        seconds: what the fits roughly take on one core; 0 if unknown.
    """

    n_models: int
    n_folds: int
    n_pairs: int
    words: float
    by_document: float
    by_query: float
    shorter: dict[str, float]
    can_keep_fewer: bool
    seconds: float

    @classmethod
    def of(
        cls,
        context: ColumnContext,
        recipe: LearnedColumn,
        folds: Sequence[Sequence[NDArray[np.int64]]],
    ) -> FitSize:
        """The size of a column whose model learns from judgements.

        Args:
            folds: for each fold the parts of its training queries, each of which is left out by a
                model; a single part is of one model of these queries.
        """
        judged, index = context.collection.judgements, context.index
        good = judged.grade > 0
        relevant = np.bincount(judged.query[good], minlength=context.collection.n_queries)
        # Negatives are drawn from these, too; other documents may be much longer or shorter.
        read = judged.document[good]
        fields = {name: _mean(index.field(name).distinct[read]) for name in (*index.fields, WHOLE)}
        fields.pop(recipe.field, None)
        by_document = _mean(index.field(recipe.field).distinct[read], recipe.heaviest)
        by_query = _mean(np.diff(context.query_words[1].indptr), recipe.heaviest)
        few = all(sum((relevant[p] > 0).sum() for p in parts) < MANY_QUERIES for parts in folds)
        n_pairs = [int(sum(relevant[part].sum() for part in parts)) for parts in folds]
        # Each pair is in the model of all parts and, but for its own part, in each part's; one
        # model by itself is validated by three others if it has few queries.
        n_parts = [len(parts) if len(parts) > 1 else N_PARTS if few else 1 for parts in folds]
        # A pair comes with about as many negatives as pairs: two documents and a query.
        pairs = float(np.dot(n_pairs, n_parts))
        words = pairs * (2 * by_document + by_query)
        shorter = {n: w for n, w in fields.items() if 0 < w <= by_document / 2 and n != "url"}
        can_keep_fewer = recipe.kind.inputs == "tf-idf" and by_document >= 2 * FEW_WORDS
        model, seconds = recipe.new_model(), 0.0
        if isinstance(model, TrainableModel):
            epochs = min(model.training.max_epochs, _EPOCHS) / _EPOCHS
            size = (words + _PAIR_WORDS * pairs) * model.get_params().get("rank", _RANK) * epochs
            seconds = size * (_SECONDS_FEW if few else _SECONDS)
        return cls(
            sum(1 + len(parts) if len(parts) > 1 else 1 for parts in folds), len(folds),
            max(n_pairs), words, by_document, by_query,
            dict(sorted(shorter.items(), key=lambda field: -field[1])), can_keep_fewer, seconds,
        )  # fmt: skip

    @property
    def is_long(self) -> bool:
        """Whether fitting may well take minutes."""
        return self.seconds >= _LONG if self.seconds else self.words >= _MANY_WORDS

    def advice(self, option: Callable[..., str]) -> str:
        """How to fit faster, a sentence without a full stop.

        Args:
            option: returns what gives the column's ``setting``: "--recipe ssi.field=".
        """
        ways = []
        if self.can_keep_fewer:
            given = option(setting="heaviest")
            ways.append(f"keep the {FEW_WORDS} words of the largest weights by {given}{FEW_WORDS}")
        if self.shorter:
            (first, words), *others = self.shorter.items()
            rest = "".join(f", {name} ({n:,.0f})" for name, n in others)
            given = option(setting="field")
            ways.append(f"read a shorter field by {given}{first} ({words:,.0f} words){rest}")
        return f"the fewer words documents have, the faster: {' or '.join(ways) or _SUMMARY}"

    def __str__(self) -> str:
        folds = f" in {counted(self.n_folds, 'fold')}" if self.n_folds > 1 else ""
        return (
            f"{counted(self.n_models, 'model')} to fit{folds}, on up to "
            f"{counted(self.n_pairs, 'relevant pair')}; relevant documents have "
            f"{counted(round(self.by_document), 'different word')} on average, queries "
            f"{self.by_query:,.0f}"
        )


def _mean(n_words: NDArray[np.int64], most: int | None = None) -> float:
    """Mean number of different words of texts that keep at most so many."""
    kept = n_words if most is None else np.minimum(n_words, most)
    return float(kept.sum() / max(1, len(kept)))
