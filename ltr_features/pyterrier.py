"""PyTerrier: columns as a transformer, single columns as re-rankers, pipelines as artifacts.

features = LtrFeatures(builder)                    # builder: a fitted FeatureBuilder
pipeline = first_stage >> features >> pt.ltr.apply_learned_model(learner, form="ltr")
reranked = first_stage >> ColumnReranker(builder, "ssi")
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from letor.errors import InputError
from letor.frames import check_whole
from letor.name_checks import positions_of
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.scoring import ScoringPipeline

_INPUTS = ["qid", "query", "docno"]
#: What query expansion and term dependence write for Terrier.
_TERRIER_QUERY = r"^\s*applypipeline:|#(?:combine[:(]|(?:uw\d*|\d+)\()"


class _OfPairs(pt.Transformer):
    """Base of the transformers of rows with ``qid``, ``query`` and ``docno``."""

    #: Names of the columns that it adds.
    added: Sequence[str] = ("score", "rank")

    def transform_inputs(self) -> list[str]:
        return _INPUTS

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        pt.validate.columns(input_columns, includes=_INPUTS)
        return [*input_columns, *(name for name in self.added if name not in input_columns)]


class LtrFeatures(_OfPairs):
    """Transformer that adds ``features``, float64 [n_columns] per row: the builder's columns.

    Input: ``qid``, ``query``, ``docno``; other columns are kept. It can be combined with other
    transformers by ``**``.

    Args:
        builder: a fitted builder; every ``docno`` must be in its collection.
        columns: names of the columns to use, in this order; None for all.
        named: also add each column under its own name.

    Raises:
        InputError: the builder has no such column; when transforming, a row lacks an id or its
            query, or a query is in Terrier's query language (so also the re-rankers).
    """

    def __init__(
        self, builder: FeatureBuilder, columns: Sequence[str] | None = None, *, named: bool = False
    ) -> None:
        super().__init__()
        self.builder, self.named = builder, named
        self.columns = list(builder.column_names if columns is None else columns)
        self.added = ["features", *(self.columns if named else [])]
        self._positions = positions_of(self.columns, builder.column_names, "the builder")

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with their features."""
        frame = _checked(frame, self)
        values = np.zeros((0, len(self.columns)))
        if len(frame):
            values = self.builder.matrix(frame)[:, self._positions].astype(np.float64)
        frame = frame.assign(features=pd.Series(list(values), index=frame.index, dtype=object))
        if self.named:
            frame = frame.assign(**dict(zip(self.columns, values.T, strict=True)))
        return frame

    def fuse_feature_union(self, other: Any, is_left: bool) -> LtrFeatures | None:
        """Fuse two transformers of the same builder, so that its columns are computed once."""
        if not isinstance(other, LtrFeatures) or other.builder is not self.builder:
            return None
        if self.named or other.named:
            return None
        first, second = (self, other) if is_left else (other, self)
        return LtrFeatures(self.builder, [*first.columns, *second.columns])


class ColumnReranker(_OfPairs):
    """Ranks documents by one column, for example the score of a trained model.

    Args:
        builder: a fitted builder. column: the column's name.

    Raises:
        InputError: the builder has no such column.
    """

    def __init__(self, builder: FeatureBuilder, column: str) -> None:
        super().__init__()
        self.builder, self.column = builder, column
        self._position = positions_of([column], builder.column_names, "the builder")[0]

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with ``score`` and ``rank`` by the column."""
        frame = _checked(frame, self)
        values = self.builder.matrix(frame)[:, self._position] if len(frame) else np.zeros(0)
        return pt.model.add_ranks(frame.assign(score=values.astype(np.float64)))


class PipelineReranker(_OfPairs):
    """Ranks each query's documents with a :class:`ltr_features.scoring.ScoringPipeline`."""

    def __init__(self, pipeline: ScoringPipeline) -> None:
        super().__init__()
        self.pipeline = pipeline

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with ``score`` and ``rank`` from the pipeline's ranker."""
        frame = _checked(frame, self)
        scores = np.zeros(len(frame))
        for (_, query), rows in frame.groupby(["qid", "query"], sort=False).indices.items():
            scores[rows] = self.pipeline.score(query, frame["docno"].iloc[rows].tolist())
        return pt.model.add_ranks(frame.assign(score=scores))


class LtrArtifact(pt.Artifact):
    """A saved pipeline (features and ranker) as a PyTerrier artifact.

    ``LtrArtifact.make(pipeline, path)`` writes it; ``pt.Artifact.load(path)`` loads it.
    """

    ARTIFACT_TYPE = "ltr_features"
    ARTIFACT_FORMAT = "pipeline"
    ARTIFACT_PACKAGE_HINT = "ltr-features"

    @classmethod
    def make(cls, pipeline: ScoringPipeline, path: str | os.PathLike[str]) -> LtrArtifact:
        """Write a pipeline and PyTerrier's description of it into a new folder.

        Raises:
            InputError: the folder holds something else.
        """
        pipeline.save(path)
        description = {
            "type": cls.ARTIFACT_TYPE,
            "format": cls.ARTIFACT_FORMAT,
            "package_hint": cls.ARTIFACT_PACKAGE_HINT,
        }
        (Path(path) / "pt_meta.json").write_text(json.dumps(description), encoding="utf-8")
        return cls(path)

    def pipeline(self) -> ScoringPipeline:
        """Load the pipeline."""
        return ScoringPipeline.load(str(self.path))

    def features(self, columns: Sequence[str] | None = None) -> LtrFeatures:
        """A transformer that adds the pipeline's columns."""
        return LtrFeatures(self.pipeline().features, columns)

    def reranker(self) -> PipelineReranker:
        """A transformer that ranks with the pipeline."""
        return PipelineReranker(self.pipeline())


def _checked(frame: pd.DataFrame, transformer: pt.Transformer) -> pd.DataFrame:
    """The frame; raise an error unless each row has ids and a query in words."""
    pt.validate.result_frame(frame, extra_columns=["query"], context=transformer)
    check_whole(frame, _INPUTS)
    rewritten = frame["query"].astype(str).str.contains(_TERRIER_QUERY)
    if rewritten.any():
        raise InputError(
            f"query {frame['query'][rewritten].iloc[0]!r} is in Terrier's query language, whose "
            "operators and weights would count as words; put pt.rewrite.reset() before, which "
            "takes the query from before its expansion"
        )
    return frame
