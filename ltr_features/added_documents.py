"""Documents added to a fitted builder, replacing some of its own or removed, without rebuilding it.

Everything learned from documents stays as it was when the ranker was trained: vocabulary, idf,
average lengths, background models, word vectors, links, and the models. So documents of the build
keep their feature values to the bit, and the thresholds of the ranker's trees keep their meaning.
A new document gets the values that it would have had in the build if it had not influenced any of
these statistics; words outside the vocabulary count only towards its lengths and by their letter
trigrams. A document that was removed is one that an empty text replaces, and that is not there for
those who ask for it.
:class:`Drift` measures how far the documents have moved away from those of the build.
"""

from __future__ import annotations

from collections.abc import Collection as IdCollection
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from letor.digests import check_files, file_digest, write_digests
from letor.errors import InputError, reading
from letor.files import atomic_path, read_at_once, read_json, write_json
from ltr_base.names import listed
from ltr_features.candidate_kinds import bm25_retriever, top_rows
from ltr_features.columns.base import ColumnFamily, computed
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fitted import FittedColumn
from ltr_features.feature_table import warn_of_new_queries
from ltr_features.text.collection import Collection, Judgements, Pairs
from ltr_features.text.collection_files import load_collection, save_collection
from ltr_features.text.id_rows import rows_of
from ltr_features.text.index import WHOLE
from ltr_features.text.index_files import HEADER

#: The file that describes a saved builder; the folder of added documents, its file of removed ids.
FEATURES, _ADDED, _REMOVED = "features.json", "added", "removed.json"
#: Format version of a builder once documents were added, or removed, which makes older programs
#: refuse it.
VERSION_ADDED, VERSION_REMOVED = 3, 4
#: The difference of the shares of documents with HTML from which drift tells of it.
_MORE_HTML = 0.05


@dataclass(frozen=True)
class Drift:
    """How far the documents have moved away from those that a builder learned from.

    Attributes:
        n_built: number of documents in the build.
        n_new: number of documents added under new ids.
        n_replaced: number of documents of the build that were replaced.
        n_removed: number of documents of the build that were removed.
        unknown: share of the words of added documents that the vocabulary lacks, 0 to 1.
        mean_length, mean_length_built: mean number of words in added documents, and in the build.
        html, html_built: share of the added documents, and of the build's, that contain HTML, 0 to
            1, among some of them.
    """

    n_built: int
    n_new: int
    n_replaced: int
    n_removed: int
    unknown: float
    mean_length: float
    mean_length_built: float
    html: float
    html_built: float

    @property
    def share(self) -> float:
        """Share of the current documents that the builder has not learned from, 0 to 1."""
        n = self.n_built - self.n_removed + self.n_new
        return (self.n_new + self.n_replaced) / n

    def __str__(self) -> str:
        removed = f"{self.n_removed:,} removed, " if self.n_removed else ""
        told = (
            f"{self.n_built:,} documents of the build, {self.n_replaced:,} of them replaced, "
            f"{removed}{self.n_new:,} new: {self.share:.1%} are unknown to statistics, models and "
            "ranker"
        )
        if self.n_new + self.n_replaced:
            told += (
                f"; of the added documents' words {self.unknown:.1%} are unknown, and they have "
                f"{self.mean_length:.1f} words where the build's have {self.mean_length_built:.1f}"
            )
        if self.html > self.html_built + _MORE_HTML:
            told += (
                f"; {self.html:.1%} of the added documents contain HTML, {self.html_built:.1%} of "
                "the build's: tags and character references are counted as words; if the build's "
                "were stripped of them, add these again without (pipeline add: --markup strip)"
            )
        return told


@dataclass(frozen=True, eq=False)
class AddedDocuments:
    """All documents that were added to a build, or removed.

    Attributes:
        context: the context of the added documents; its ``base`` is the context of the build. It
            has removed documents, too, with empty texts.
        removed: ids of the removed documents.
        saved: digests of saved documents that are all among these: those that they were loaded
            from or added to, and those that :meth:`save` wrote.
        replaced: int64, rows of the build's documents that they replace, or that were removed, in
            increasing order.
    """

    context: ColumnContext
    removed: frozenset[str] = frozenset()
    saved: set[str] = field(default_factory=set)
    replaced: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        built = self.context.learned_from.collection
        rows = rows_of(self.context.collection.document_ids, built.document_ids)
        object.__setattr__(self, "replaced", np.sort(rows[rows >= 0]))

    @classmethod
    def of(
        cls,
        built: ColumnContext,
        ids: Sequence[str],
        fields: Mapping[str, Sequence[str]],
        before: AddedDocuments | None = None,
        *,
        removed: IdCollection[str] = (),
    ) -> AddedDocuments:
        """Add documents to those of a build.

        Args:
            built: the context of the build.
            ids: distinct ids; earlier documents with the same ids are replaced.
            fields: texts by field; fields of the build that are not given are empty.
            before: documents added before.
            removed: those of the ids whose documents are removed; their texts must be empty.

        Raises:
            InputError: no documents, duplicate ids, no text, or a field that the build lacks.
        """
        known = list(built.collection.fields)
        if odd := sorted(set(fields) - set(known)):
            raise InputError(
                f"the documents have no field {', '.join(odd)}; they have {', '.join(known)}"
            )
        if not len(fields):
            raise InputError(f"added documents need one of the fields {', '.join(known)}")
        added = _collection(
            built, list(ids), {s: list(fields.get(s, [""] * len(ids))) for s in known}
        )
        if before is not None:
            old, new = before.context.collection, set(added.document_ids)
            kept = [row for row, name in enumerate(old.document_ids) if name not in new]
            added = _collection(
                built,
                [*(old.document_ids[row] for row in kept), *added.document_ids],
                {s: [*(old.fields[s][r] for r in kept), *added.fields[s]] for s in known},
            )
        if before is None:
            return cls(built.of_added(added), frozenset(removed))
        gone = before.removed.difference(ids).union(removed)
        return cls(built.of_added(added), gone, set(before.saved))

    def check(self, columns: Sequence[ColumnFamily]) -> None:
        """Raise InputError if a family cannot compute its columns for added documents."""
        unable = [family.name for family in columns if not family.knows_added]
        if unable:
            raise InputError(
                f"column family {listed(unable, 5)}: it does not say that it can compute documents "
                "that are added to others (`knows_added`); build the columns of all documents again"
            )

    def drift(self) -> Drift:
        """Measure how far the documents have moved away from those of the build."""
        whole, built = self.context.index.field(WHOLE), self.context.learned_from.collection
        n, n_words = len(whole.lengths) - len(self.removed), int(whole.lengths.sum())
        n_removed = int((rows_of(sorted(self.removed), built.document_ids) >= 0).sum())
        n_replaced = len(self.replaced) - n_removed
        return Drift(
            n_built=whole.n_documents,
            n_new=n - n_replaced,
            n_replaced=n_replaced,
            n_removed=n_removed,
            unknown=1 - int(whole.counts.sum()) / n_words if n_words else 0.0,
            mean_length=n_words / max(n, 1),
            mean_length_built=whole.mean_length,
            # Of the documents with text: those that were removed have none.
            html=min(self.context.collection.html_share * len(whole.lengths) / max(n, 1), 1.0),
            html_built=built.html_share,
        )

    def save(self, folder: Path) -> None:
        """Write the documents into the folder of the saved builder; the description that mentions
        them is written last, so that an interrupted call leaves the earlier state.

        Raises:
            InputError: the folder holds no builder, or one built from other documents, or another
                program has added documents there since.
        """
        index = self.context.learned_from.index
        with reading(folder, "it holds no saved pipeline"):
            header = read_json(folder / "workspace" / "index" / HEADER)
            if (header["vocabulary_fingerprint"], header["n_documents"]) != (
                index.vocabulary.fingerprint,
                index.n_documents,
            ):
                raise InputError("it was built from other documents than these were added to")
            if not _saved(folder) <= self.saved:
                raise InputError(
                    "documents were added there since this pipeline was loaded or saved, and would "
                    "be lost; load it again and add to that (or run the command again)"
                )
        with atomic_path(folder / _ADDED, kind="folder") as partial:
            partial.mkdir()
            save_collection(self.context.collection, partial)
            if self.removed:
                write_json(partial / _REMOVED, sorted(self.removed))
            write_digests(partial)  # its own, so that an interrupted call leaves them true
        version = VERSION_REMOVED if self.removed else VERSION_ADDED
        description = read_json(folder / FEATURES) | {"version": version, "added": True}
        with atomic_path(folder / FEATURES) as path:
            write_json(path, description)
        self.saved.update(_saved(folder))

    @classmethod
    def load(cls, built: ColumnContext, folder: Path) -> AddedDocuments:
        """Read what :meth:`save` wrote.

        Raises:
            InputError: the files are damaged or belong to another build.
        """

        def read() -> AddedDocuments:
            check_files(folder / _ADDED, "*")
            saved, added = _saved(folder), load_collection(folder / _ADDED)
            removed = _removed(folder, added.document_ids)
            found = cls.of(built, added.document_ids, added.fields, removed=removed)
            found.saved.update(saved)
            return found

        return read_at_once(folder / _ADDED, read)


def _saved(folder: Path) -> set[str]:
    """The digest of the documents that were added to the builder saved in a folder, if any."""
    if not read_json(folder / FEATURES).get("added"):
        return set()
    paths = [folder / _ADDED / name for name in ("corpus.jsonl", _REMOVED)]
    with reading(paths[0]):
        return {"".join(file_digest(path) for path in paths if path.is_file() or path is paths[0])}


def _removed(folder: Path, ids: Sequence[str]) -> list[str]:
    """The ids of the removed documents among those that a saved builder has in its folder of added
    ones."""
    path = folder / _ADDED / _REMOVED
    if not path.is_file():
        return []
    with reading(path, "it is damaged"):
        removed = read_json(path)
        if not isinstance(removed, list) or not set(removed) <= set(ids):
            raise ValueError("it is no list of ids among the added documents")
    return removed


def _collection(
    built: ColumnContext, ids: Sequence[str], fields: Mapping[str, Sequence[str]]
) -> Collection:
    base = built.collection
    return Collection(base.name, ids, fields, [], [], Judgements.none(), withheld=base.withheld)


class Documents:
    """All documents that a builder can score: those of the build and the added ones.

    Args:
        built: the context of the build. added: the added documents, or None.
    """

    def __init__(self, built: ColumnContext, added: AddedDocuments | None) -> None:
        self.built, self.added = built, added
        self._n_built = built.collection.n_documents

    @cached_property
    def _every_id(self) -> Sequence[str]:
        """Ids by row: of the build's documents, then of the added ones."""
        ids = self.built.collection.document_ids
        return ids if self.added is None else [*ids, *self.added.context.collection.document_ids]

    @cached_property
    def _is_there(self) -> NDArray[np.bool_]:
        """bool, by row: whether the document is neither replaced nor removed."""
        there = np.zeros(len(self._every_id), dtype=np.bool_)
        there[list(self._rows.values())] = True
        return there

    @cached_property
    def _rows(self) -> dict[str, int]:
        removed: IdCollection[str] = () if self.added is None else self.added.removed
        # An added document wins.
        rows = {document: row for row, document in enumerate(self._every_id)}
        return {document: row for document, row in rows.items() if document not in removed}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __contains__(self, docno: object) -> bool:
        return docno in self._rows

    def rows(self, docnos: Sequence[str]) -> NDArray[np.int64]:
        """int64 [n]: rows of documents by id; added documents come after all others.

        Raises:
            InputError: an unknown id.
        """
        rows = self._rows
        try:
            return np.fromiter(map(rows.__getitem__, docnos), dtype=np.int64, count=len(docnos))
        except KeyError as error:
            name = self.built.collection.name
            raise InputError(f"collection {name!r} has no document {error}") from None

    def compute(
        self,
        columns: Sequence[ColumnFamily],
        queries: Sequence[str],
        ids: Sequence[str] | None,
        query: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> NDArray[np.float32]:
        """float32 [n, n_columns]: features of the pairs (queries[query[i]], document rows[i])."""

        def compute(context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
            context = context.for_queries(queries, ids)
            warn_of_new_queries(context, pairs, columns)
            return np.hstack([computed(column, context, pairs) for column in columns])

        if self.added is None:
            return compute(self.built, Pairs(query, rows))
        is_added = rows >= self._n_built
        of_built = compute(self.built, Pairs(query[~is_added], rows[~is_added]))
        values = np.empty((len(rows), of_built.shape[1]), dtype=np.float32)
        values[~is_added] = of_built
        if is_added.any() or not len(rows):
            pairs = Pairs(query[is_added], rows[is_added] - self._n_built)
            values[is_added] = compute(self.added.context, pairs)
        return values

    def best(self, query: str, depth: int, model: FittedColumn | None = None) -> list[str]:
        """Ids of the best documents for a query, best first, by a model or else by BM25; replaced
        documents are ranked by their new text."""
        if model is not None:
            found = self._best_by(model, query, depth)
        elif self.added is None:
            found, _ = _best(self.built, query, depth)
        else:
            rows, scores, kept = self._best_of_built(query, depth)
            added_rows, added_scores = _best(self.added.context, query, depth)
            every = np.concatenate([rows[kept], added_rows + self._n_built])
            order = np.argsort(-np.concatenate([scores[kept], added_scores]), kind="stable")
            found = every[order[:depth]]
        return [self._every_id[row] for row in found.tolist()]

    def _best_by(self, model: FittedColumn, query: str, depth: int) -> NDArray[np.int64]:
        """Rows of a model's best documents, without those whose score is 0."""
        contexts = [self.built] if self.added is None else [self.built, self.added.context]
        first = np.zeros(1, dtype=np.int64)
        scores = np.hstack([model.scores(of.for_queries([query]), first) for of in contexts])
        scores[:, ~self._is_there] = 0
        return top_rows(scores, depth).document

    def _best_of_built(
        self, query: str, depth: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Rows and scores of BM25's best documents of the build, and which of them are neither
        replaced nor removed: at least ``depth``, if there are as many. Asking for that many more
        than ``depth`` at once would take ten times as long once a third of many is replaced."""
        asked = depth
        while True:
            asked = min(2 * asked, self._n_built)
            rows, scores = _best(self.built, query, asked)
            kept = self._is_there[rows]
            if len(rows) < asked or asked == self._n_built or kept.sum() >= depth:
                return rows, scores, kept


def _best(
    context: ColumnContext, query: str, depth: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    query_counts = context.for_queries([query]).query_counts
    pairs, scores = bm25_retriever(context).top(query_counts, depth, threads=1)
    return pairs.document, scores
