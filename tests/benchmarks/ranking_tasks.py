"""Collections as ranking tasks: matrices, judged pairs, and queries held out for testing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import data_sets
import numpy as np
from data_sets import folder_of
from gensim.test.utils import datapath
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ltr_features import read_collection
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.term_space import TermSpace
from ltr_features.sources.wikipedia import EXCERPT
from ltr_features.sources.wikipedia_sections import section_collection
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection
from ltr_features.text.index import WHOLE, TermIndex
from ltr_features.text.term_counts import count_terms
from ssi_models.base import MatchingModel
from ssi_models.kernels.pair_losses import judged_lists, ranking_measures
from ssi_models.training.preferences import Preferences
from ssi_models.weighting import TfIdf

N_PARTS = 3
#: Of Wikispeedia: words of an article, articles that have a word at least, articles asked for.
N_WORDS, MIN_ARTICLES, N_TRAINING, N_TEST = 100, 5, 1000, 1000
#: Of the sentences: training pairs, and sentences that have a word at least.
N_PAIRS, MIN_SENTENCES = 5000, 2
_QUERIES_AT_ONCE = 200

Matrices = tuple[csr_matrix, csr_matrix]


@dataclass(frozen=True)
class Split:
    """Query rows (int64, ascending) to learn from and to be ranked for."""

    name: str
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    def halves(self) -> list[Split]:
        """Its training queries in two seeded halves, each ranked by models of the other."""
        return in_parts(self.train, 2, [f"{self.name}{half}" for half in "ab"])


@dataclass(frozen=True, eq=False)
class Task:
    """A collection to fit models on.

    Attributes:
        rows: Q and D as unit tf-idf rows. counts: Q and D as counts of words.
        preferences: which documents are relevant.
        splits: each query is tested once at most.
        excluded: for each query a document that is not ranked for it; or None.
        separate: whether queries and documents have vocabularies of their own.
    """

    name: str
    rows: Matrices
    counts: Matrices
    preferences: Preferences
    splits: Sequence[Split]
    excluded: NDArray[np.int64] | None = None
    separate: bool = False

    def matrices(self, model: MatchingModel) -> Matrices:
        """Q and D as the model takes them."""
        return self.counts if model.inputs == "counts" else self.rows

    def average_precisions(
        self, model: MatchingModel, queries: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Of all documents ranked for each of the query rows; ties count against the model."""
        Q, D = self.matrices(model)
        cached = model.cache(D)
        values = np.empty(len(queries))
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            block = queries[start : start + _QUERIES_AT_ONCE]
            relevant, hidden = np.zeros((2, len(block), D.shape[0]), bool)
            for i, query in enumerate(block):
                relevant[i, self.preferences.documents_of(query)] = True
                if self.excluded is not None and self.excluded[query] >= 0:
                    hidden[i, self.excluded[query]] = True
            sources = None if self.excluded is None else self.excluded[block]
            scores = np.ascontiguousarray(cached.scores(Q[block], excluded=sources), np.float32)
            out = values[start : start + len(block)]
            ranking_measures(scores, *judged_lists(relevant, hidden), out, np.empty(len(block)))
        return values


def in_parts(
    queries: NDArray[np.int64],
    n: int,
    names: Sequence[str] = (),
    together: NDArray[np.int64] | None = None,
) -> list[Split]:
    """The queries in n seeded parts, each tested by models of the others; query rows with the same
    label in ``together`` stay in one part."""
    label = queries if together is None else together[queries]
    shuffled = np.random.default_rng([0, len(queries)]).permutation(np.unique(label))
    parts = [np.sort(queries[np.isin(label, part)]) for part in np.array_split(shuffled, n)]
    names = names or [str(number) for number in range(1, n + 1)]
    return [
        Split(name, np.setdiff1d(queries, part), part)
        for name, part in zip(names, parts, strict=True)
    ]


def of_official(path: Path) -> Task:
    """A collection in BEIR's layout with its own training and test queries."""
    collection = read_collection("beir", folder=path, splits=["train", "test"])
    judged = collection.judgements
    rows, counts = of_collection(collection)
    preferences = pairs(rows, judged.query, judged.document, judged.grade)
    official = set(read_collection("beir", folder=path, splits=["train"]).query_ids)
    trains = np.array([query in official for query in collection.query_ids])[preferences.queries]
    split = Split("1", preferences.queries[trains], preferences.queries[~trains])
    return Task(path.name, rows, counts, preferences, [split])


def citations() -> Task:
    """CACM's citations: find the papers that a paper cites or that cite it, by its text."""
    collection = read_collection("beir", folder=folder_of("cacm"), links="citations.tsv")
    links = collection.links
    both = np.concatenate([[links.source, links.target], [links.target, links.source]], axis=1)
    return of_links("citations", collection, *both)


def sections() -> Task:
    """The task of the demo: other sections of an article of Wikipedia, by ten words of one."""
    collection = section_collection(datapath(EXCERPT))
    judged = collection.judgements
    rows, counts = of_collection(collection)
    preferences = pairs(rows, judged.query, judged.document, judged.grade)
    splits = in_parts(preferences.queries, N_PARTS)
    return Task("demo", rows, counts, preferences, splits, collection.query_sources)


def articles() -> Task:
    """Wikispeedia: find the articles that an article links to, by its text.

    Of each text the first 100 words after the site's own heading are kept, and of them those in
    five articles at least. Of the articles with links 1,000 random ones are tested, and 1,000
    others, with all their links, trained on.
    """
    _, texts = data_sets.articles()
    beginnings = [
        " ".join(text.split("Related subjects: ", 1)[-1].split()[:N_WORDS]) for text in texts
    ]
    rows, counts = of_texts(beginnings, Analyzer(stopwords="english"), MIN_ARTICLES)
    source, target = np.array(data_sets.links()).T
    other = source != target
    preferences = pairs((rows, rows), source[other], target[other])
    asked = np.random.default_rng(0).permutation(preferences.queries)
    train, test = asked[N_TEST : N_TEST + N_TRAINING], asked[:N_TEST]
    split, own = Split("1", np.sort(train), np.sort(test)), np.arange(len(texts))
    return Task("wikispeedia", (rows, rows), (counts, counts), preferences, [split], own)


def sentences(name: str, path: Path, languages: Sequence[str]) -> Task:
    """Texts in one language and their mates in another, line by line of ``train`` and ``test``: up
    to 5,000 random training pairs and all test pairs, words of two of them at least; the second
    language's texts of both are ranked."""
    sides, n_train = [], 0
    for language in languages:
        train, test = (
            (path / f"{part}.{language}").read_text(encoding="utf-8").splitlines()
            for part in ("train", "test")
        )
        n_train = min(N_PAIRS, len(train))
        drawn = np.random.default_rng(0).choice(len(train), n_train, replace=False)
        texts = [train[i] for i in np.sort(drawn)] + test
        sides.append(of_texts(texts, Analyzer(min_length=1), MIN_SENTENCES))
    (Q, Q_counts), (D, D_counts) = sides
    every = np.arange(Q.shape[0])
    split = Split("1", every[:n_train], every[n_train:])
    preferences = pairs((Q, D), every, every)
    return Task(name, (Q, D), (Q_counts, D_counts), preferences, [split], separate=True)


def of_folder(path: Path) -> Task:
    """A collection of your own, in BEIR's layout: find the documents that a document links to, by
    its text, where there is a ``links.tsv``; or else those judged relevant to a query. Or texts in
    English and another language, XX: lines of ``train.XX``, ``train.en``, ``test.XX``, ``test.en``.

    Judgements in ``train`` and ``test`` are kept apart. Otherwise, of more queries than are trained
    on and tested here, random ones are taken.
    """
    if (path / "train.en").is_file():
        (other,) = {file.suffix[1:] for file in path.glob("train.*")} - {"en"}
        return sentences(path.name, path, (other, "en"))
    if list(path.glob("qrels/train.*")):
        return of_official(path)
    linked = "links.tsv" if (path / "links.tsv").is_file() else None
    collection = read_collection("beir", folder=path, links=linked)
    if linked:
        return of_links(path.name, collection, collection.links.source, collection.links.target)
    judged = collection.judgements
    rows, counts = of_collection(collection)
    preferences = pairs(rows, judged.query, judged.document, judged.grade)
    splits = in_parts(drawn(preferences), N_PARTS, together=collection.kept_together())
    return Task(path.name, rows, counts, preferences, splits)


def of_links(
    name: str, collection: Collection, source: NDArray[np.int64], target: NDArray[np.int64]
) -> Task:
    """Find the documents that a document links to, by its text."""
    (_, D), (_, counts) = of_collection(collection)
    other = source != target
    preferences = pairs((D, D), source[other], target[other])
    splits, own = in_parts(drawn(preferences), N_PARTS), np.arange(D.shape[0])
    return Task(name, (D, D), (counts, counts), preferences, splits, own)


def drawn(preferences: Preferences) -> NDArray[np.int64]:
    """The query rows, ascending; of more than are trained on and tested here, random ones."""
    asked = np.random.default_rng(0).permutation(preferences.queries)
    return np.sort(asked[: N_TRAINING + N_TEST])


#: How to read each collection, the quick ones first.
COLLECTIONS: dict[str, Callable[[], Task]] = {
    "cranfield": lambda: of_folder(folder_of("cranfield")),
    "cacm": lambda: of_folder(folder_of("cacm")),
    "cisi": lambda: of_folder(folder_of("cisi")),
    "enja": lambda: sentences("enja", folder_of("small_parallel_enja"), ("ja", "en")),
    "citations": citations,
    "npl": lambda: of_folder(folder_of("npl")),
    "demo": sections,
    "wikispeedia": articles,
    "nfcorpus": lambda: of_official(folder_of("nfcorpus")),
}


def of_collection(collection: Collection) -> tuple[Matrices, Matrices]:
    """Queries and documents as unit tf-idf rows, and as counts."""
    index = TermIndex.build(collection, Analyzer(stopwords="english"))
    context = ColumnContext(collection, index, threads=1)
    space = TermSpace.of(context)
    return (space.Q, space.D), (context.query_counts, index.counts(WHOLE))


def of_texts(texts: Sequence[str], analyzer: Analyzer, least: int) -> Matrices:
    """Texts as unit tf-idf rows, and as counts, of the words that ``least`` texts have."""
    _, counts = count_terms(texts, analyzer)
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    counts = counts[:, np.flatnonzero(frequency >= least)]
    return TfIdf().fit(counts).transform(counts), counts


def pairs(
    matrices: Matrices,
    query: NDArray[np.int64],
    document: NDArray[np.int64],
    grade: NDArray[np.int64] | None = None,
) -> Preferences:
    """The judged pairs of the rows of Q and D."""
    Q, D = matrices
    shape = {"n_queries": Q.shape[0], "n_documents": D.shape[0]}
    return Preferences.from_pairs(query, document, grade, **shape)
