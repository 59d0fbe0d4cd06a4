"""ScoringPipeline: columns and a trained ranker, for one query at a time."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.column_settings import changed_settings
from letor.dataset import RankingData, check_texts
from letor.digests import check_files, check_part, write_digests
from letor.errors import InputError, LetorWarning, NotFittedError, reading
from letor.files import atomic_path, check_replaced, read_at_once, remove_temporary
from letor.lock import locked
from letor.rankers.base import Ranker
from letor.rankers.contributions import column_contributions
from letor.rankers.registry import load_ranker
from ltr_base.former import former_names
from ltr_base.names import listed
from ltr_base.user_warning import warn_user
from ltr_features.columns.context import is_workspace
from ltr_features.feature_builder import FeatureBuilder


class ScoringPipeline:
    """Scores documents for one query at a time; scores equal those of batch scoring to the bit.

    Document representations (embeddings, links, term counts, postings) are computed at the first
    query and kept. The pipeline keeps what builder and ranker have learned when it is made, also if
    they are fitted again later. It leaves out families and models of which the ranker takes no
    column: they may be such as know no new queries or added documents.

    Args:
        features: a fitted builder that has the columns of the ranker.
        ranker: a fitted ranker. With a normaliser that looks at all candidates of a query
            ("raw+zscore", the default of LambdaMART, or "minmax"), scores depend on the set of
            candidates, as they do in training.

    Warns:
        LetorWarning: the ranker was trained on columns of other settings than the builder's, of
            models of another fold, or on candidates of sources that have none for new queries.

    Raises:
        NotFittedError: the ranker is not fitted.
        InputError: the ranker was trained on columns that the builder does not make, or that new
            queries do not have.
    """

    def __init__(self, features: FeatureBuilder, ranker: Ranker) -> None:
        features = self.check(features, ranker)
        if (remark := changed_settings(ranker.column_settings_, _settings(features))) is not None:
            warn_user(f"the pipeline: {remark}", LetorWarning)
        taken = [*features.searches_]
        if others := [name for name in features.candidates if name not in taken]:
            warn_user(
                f"the pipeline: rank takes the candidates of {listed(taken or ['bm25'], 5)}, not "
                f"those of {listed(others, 5)}, on which it was trained: name the documents to "
                "rank (docnos), or train on candidates of bm25 and of models that learn from texts",
                LetorWarning,
            )
        self.features, self.ranker = features, copy.copy(ranker)

    @staticmethod
    def check(features: FeatureBuilder, ranker: Ranker) -> FeatureBuilder:
        """The families and models of a builder, fitted or not, that a fitted ranker needs.

        Raises:
            NotFittedError, InputError: as for the class.
        """
        if not hasattr(ranker, "feature_names_"):
            raise NotFittedError(f"{type(ranker).__name__} is not fitted: call fit first")
        missing = sorted(set(ranker.feature_names_) - set(features.column_names))
        if missing:
            raise InputError(
                f"the ranker needs the columns {listed(missing, 20)}, which the features do "
                "not have; build them as they were built for training"
            )
        needed = features.only(ranker.feature_names_)
        if given := [family.name for family in needed.families if not family.knows_new_queries]:
            raise InputError(
                f"column family {listed(given, 5)}: new queries have no given scores or vectors, "
                "so a pipeline cannot compute its columns; train the ranker without (rank train "
                "--without COLUMN)"
            )
        return needed

    def __repr__(self) -> str:
        return f"<ScoringPipeline: {self.ranker!r} on {self.features!r}>"

    def score(self, query: str, docnos: Sequence[str]) -> NDArray[np.float32]:
        """float32 [n]: the ranker's score of each document, in the order given.

        Raises:
            InputError: an unknown document.
        """
        return self.ranker.predict(self._rows(query, docnos))

    def _rows(self, query: str, docnos: Sequence[str]) -> RankingData:
        """A row of the ranker's columns for each document."""
        X = self.features.compute([query], np.zeros(len(docnos), np.int64), docnos)
        data = RankingData(
            X=X,
            y=np.zeros(len(X), np.float32),
            query_ids=["query"],
            query_index=np.zeros(len(X), np.int64),
            column_names=self.features.column_names,
        )
        if data.column_names == self.ranker.feature_names_:
            return data
        return data.select_columns(self.ranker.feature_names_)

    def rank(
        self,
        query: str,
        n: int = 10,
        *,
        docnos: Sequence[str] | None = None,
        excluded: Sequence[str] = (),
    ) -> pd.DataFrame:
        """The n best documents: ``docno``, ``score`` (float32), ``rank`` (from 1).

        Args:
            query: the text of the query.
            n: number of documents.
            docnos: the candidates, by default those of :meth:`FeatureBuilder.best_documents`. One
                that is named twice is one candidate, as in training.
            excluded: ids of documents that are no candidates. If the query is a document, exclude
                that, as training did (``query_sources``): as a candidate it changes the scores of
                the others, too.

        Raises:
            InputError: an unknown document, ids that are not a list of texts, or n is below 0 or
                not a whole number.
        """
        docnos = self._candidates(query, n, docnos, excluded)
        return _ranked(docnos, self.score(query, docnos), n)[1]

    def rank_queries(
        self,
        queries: Mapping[str, str],
        n: int = 1000,
        *,
        docnos: Mapping[str, Sequence[str]] | None = None,
        excluded: Mapping[str, Sequence[str]] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> pd.DataFrame:
        """The n best documents of each query: ``qid``, ``docno``, ``score`` (float32), ``rank``
        (from 1), as :func:`letor.trec.write_run` and ranx take them. A query without candidates
        has no row.

        Args:
            queries: texts by id. n: number of documents of each.
            docnos, excluded: those arguments of :meth:`rank`, by query id; a query that ``docnos``
                lacks has no candidates.
            on_progress: called with (queries done, all queries) after each query.

        Raises:
            InputError: as :meth:`rank`, before any query is ranked; or there are no queries, or one
                is not text.
        """
        if not queries:
            raise InputError("no queries to rank documents for")
        for qid, query in queries.items():
            if not isinstance(query, str):
                raise InputError(f"the text of query {qid!r} is {query!r}, not text")
            named = (docnos or {}).get(qid, ())
            check_texts(f"docnos of query {qid!r}", named)
            if unknown := self.features.unknown_documents(named):
                raise InputError(f"docnos of query {qid!r}: there is no document {unknown[0]!r}")
        rankings = []
        for done, (qid, query) in enumerate(queries.items(), start=1):
            given = None if docnos is None else docnos.get(qid, ())
            best = self.rank(query, n, docnos=given, excluded=(excluded or {}).get(qid, ()))
            best.insert(0, "qid", qid)
            rankings.append(best)
            if on_progress is not None:
                on_progress(done, len(queries))
        return pd.concat(rankings, ignore_index=True)

    def explain(
        self,
        query: str,
        n: int = 10,
        *,
        docnos: Sequence[str] | None = None,
        excluded: Sequence[str] = (),
    ) -> pd.DataFrame:
        """How the columns make the scores of the n best documents; arguments and errors as those of
        :meth:`rank`.

        Returns:
            Its columns and, in a row for each of the ranker's columns, ``column``, ``value`` (what
            the document has in it, float32) and ``contribution`` (float64), the largest first
            whatever its sign. The contributions of a document add up to its score minus the mean
            score of all candidates, see :func:`~letor.rankers.contributions.column_contributions`.
        """
        docnos = self._candidates(query, n, docnos, excluded)
        rows = self._rows(query, docnos)
        best, found = _ranked(docnos, self.ranker.predict(rows), n)
        parts = column_contributions(self.ranker, rows)[best]
        order = np.argsort(-np.abs(parts), axis=1, kind="stable")
        explained = found.loc[np.repeat(found.index, len(rows.column_names))].assign(
            column=np.array(rows.column_names, dtype=object)[order].ravel(),
            value=np.take_along_axis(rows.X[best], order, axis=1).ravel(),
            contribution=np.take_along_axis(parts, order, axis=1).ravel(),
        )
        return explained.reset_index(drop=True)

    def _candidates(
        self, query: str, n: int, docnos: Sequence[str] | None, excluded: Sequence[str]
    ) -> list[str]:
        """Ids of the documents to rank, each once; arguments as those of :meth:`rank`."""
        if not isinstance(n, Integral) or n < 0:
            raise InputError(f"n must be a whole number, 0 or more, got {n!r}")
        if docnos is None:
            return list(self.features.best_documents(query, excluded=excluded))
        check_texts("excluded", excluded)
        barred = set(excluded)
        # A list: a pandas Series would find docnos[row] by its index.
        return [docno for docno in dict.fromkeys(docnos) if docno not in barred]

    @former_names(streams="fields")
    def with_documents(self, ids: Sequence[str], fields: Mapping[str, Sequence[str]]) -> Self:
        """A new pipeline with documents added, or replaced if their ids exist already, see
        :meth:`FeatureBuilder.with_documents`. All other documents keep their columns to the bit,
        and, among the same candidates, their scores."""
        return self._with(self.features.with_documents(ids, fields))

    def without_documents(self, ids: Sequence[str]) -> Self:
        """A new pipeline without some documents, see :meth:`FeatureBuilder.without_documents`. All
        other documents keep their columns to the bit, and, among the same candidates, their
        scores."""
        return self._with(self.features.without_documents(ids))

    def _with(self, features: FeatureBuilder) -> Self:
        """The pipeline with the same columns of other documents; what was told of it is not told
        again."""
        changed = copy.copy(self)
        changed.features = copy.copy(features)
        return changed

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the pipeline to a new folder: ``features`` and ``ranker``; it contains no code.

        Raises:
            InputError: the folder holds something else, or documents are being added there.
        """
        folder = Path(folder)
        check_replaced(folder, "ranker", "pipeline")
        # Free again before the old folder is moved aside: some systems move no open files.
        held = locked(folder) if folder.is_dir() else nullcontext()
        with atomic_path(folder, kind="folder") as partial, held:
            partial.mkdir()
            self.features.save(partial / "features")
            self.ranker.save(partial / "ranker")
            write_digests(partial)

    def save_added(self, folder: str | os.PathLike[str]) -> None:
        """Write only the added documents, and which were removed, into the folder where the
        pipeline was saved.

        Raises:
            InputError: no documents were added or removed, the folder does not hold this pipeline,
                or another program is adding documents there or has done so since this one was
                loaded.
        """
        folder, added = Path(folder), self.features.added_
        if added is None:
            raise InputError(
                "no documents were added to this pipeline or removed; see with_documents"
            )
        if not folder.is_dir():
            raise InputError(f"{folder}: it holds no saved pipeline")
        with locked(folder):
            for part in (folder / "features", folder):
                remove_temporary(part)  # what a killed process left, for the folder is ours
            added.save(folder / "features")
            for part in (folder / "features", folder):
                write_digests(part)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        ranker: type[Ranker] | None = None,
        threads: int | None = 1,
        **given: Any,
    ) -> Self:
        """Read what :meth:`save` wrote.

        Args:
            ranker: the class of a ranker that is not registered, which cannot be found by name.
            given: ``families`` and ``models`` of :meth:`FeatureBuilder.load`.

        Raises:
            InputError: the folder holds no pipeline, or its ranker must be given and is not; or
                features and ranker were not saved together.
        """
        folder = Path(folder)
        return read_at_once(folder, lambda: cls._load(folder, ranker, threads, given))

    @classmethod
    def _load(
        cls,
        folder: Path,
        ranker: type[Ranker] | None,
        threads: int | None,
        given: Mapping[str, Any],
    ) -> Self:
        with reading(folder):
            found = (folder / "features").is_dir()
        if not found:
            what = "is a workspace, not a" if is_workspace(folder) else "holds no"
            raise InputError(
                f"{folder} {what} saved pipeline; make one of folds and a trained ranker by "
                "`ltr-features pipeline build`, or in Python by ScoringPipeline(features, "
                "ranker).save(FOLDER)"
            )
        check_part(folder, "features")
        check_files(folder, "ranker/*")
        features = FeatureBuilder.load(folder / "features", threads=threads, **given)
        load = load_ranker if ranker is None else ranker.load
        with reading(folder):
            return cls(features, load(folder / "ranker"))


def _ranked(
    docnos: Sequence[str], scores: NDArray[np.float32], n: int
) -> tuple[NDArray[np.intp], pd.DataFrame]:
    """The places of the n best documents, and their ranking."""
    best = np.argsort(-scores, kind="stable")[:n]
    ranking = {
        "docno": [docnos[row] for row in best.tolist()],
        "score": scores[best],
        "rank": np.arange(1, len(best) + 1),
    }
    return best, pd.DataFrame(ranking)


def _settings(features: FeatureBuilder) -> dict[str, dict[str, Any]]:
    """What decides the values of a fitted builder's columns, by column name."""
    return {
        name: family.column_settings(features.context_, name)
        for family in [*features.families, *features.fitted_]
        for name in family.column_names
    }
