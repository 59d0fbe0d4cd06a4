"""All 34 embedding columns of Ensan et al. 2017, as one family."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily, ColumnSpec
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.doc_embeddings import DocumentEmbeddingChunk, DocumentEmbeddingWord
from ltr_features.columns.entities import DocumentEmbeddingEntity, WordEmbeddingEntity
from ltr_features.columns.field_cosines import ENSAN
from ltr_features.columns.word_embeddings import WordEmbeddingWord
from ltr_features.parameters import check_names
from ltr_features.text.collection import Pairs

_PARTS: tuple[type[ColumnFamily], ...] = (
    WordEmbeddingWord,
    WordEmbeddingEntity,
    DocumentEmbeddingWord,
    DocumentEmbeddingEntity,
    DocumentEmbeddingChunk,
)


def _by_part(options: Mapping[str, Any]) -> dict[type[ColumnFamily], dict[str, Any]]:
    """The options that each of the five families takes."""
    known = {part: inspect.signature(part).parameters for part in _PARTS}
    return {
        part: {k: v for k, v in part.without_unused(options).items() if k in known[part]}
        for part in _PARTS
    }


class Ensan2017(ColumnFamily):
    """The columns of ``w2v-word`` (8), ``w2v-entity`` (8), ``d2v-word`` (4), ``d2v-entity`` (8) and
    ``d2v-chunk`` (6), in the order of the paper's Table 1.

    Args:
        options: parameters of the five families; each takes those that it knows: ``vectors``
            (word vectors), ``model`` (doc2vec), ``knowledge`` (entities), ``folder``, ...

    Raises:
        InputError: a parameter is unknown to all families, or is of training and none is to train,
            or a family rejects its value.
    """

    knows_added: ClassVar[bool] = True
    name: ClassVar[str] = "ensan2017"
    description: ClassVar[str] = "the 34 embedding columns: words, documents, chunks and entities"
    reference: ClassVar[str] = ENSAN

    def __init__(self, **options: Any) -> None:
        known = set().union(*(inspect.signature(part).parameters for part in _PARTS))
        check_names(options, sorted(known), f"column family {self.name!r}")
        if unused := options.keys() - self.without_unused(options).keys():
            raise InputError(
                f"{', '.join(sorted(unused))}: for training what vectors or model name as a file, "
                "which is trained already; leave it out"
            )
        self.options = options
        self.parts = [part(**used) for part, used in _by_part(options).items()]

    @classmethod
    def without_unused(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        used = set().union(*_by_part(options).values())
        return {name: value for name, value in options.items() if name in used}

    def get_params(self) -> dict[str, Any]:
        return dict(self.options)

    @property
    def trained_on(self) -> str:
        return "; ".join(dict.fromkeys(part.trained_on for part in self.parts))

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(column for part in self.parts for column in part.columns)

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        return np.hstack([part.compute(context, pairs) for part in self.parts])

    def check(self, context: ColumnContext) -> None:
        for part in self.parts:
            part.check(context)

    def save_learned(self, context: ColumnContext, folder: Path) -> None:
        for part in self.parts:
            part.save_learned(context, folder)

    def load_learned(self, context: ColumnContext, folder: Path) -> None:
        for part in self.parts:
            part.load_learned(context, folder)

    def remarks_on(self, context: ColumnContext) -> list[str]:
        said = (remark for part in self.parts for remark in part.remarks_on(context))
        return list(dict.fromkeys(said))

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> list[int]:
        return [n for part in self.parts for n in part.n_missing(context, pairs)]

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        part = next(part for part in self.parts if column in part.column_names)
        return part.missing_remark(column, n_missing, n)

    def absent(self, context: ColumnContext) -> dict[str, str]:
        return {k: v for part in self.parts for k, v in part.absent(context).items()}
