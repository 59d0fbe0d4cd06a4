"""A small collection in every supported file format, for tutorials and for trying out commands.

It is made from 30 articles of the Wikipedia excerpt that is installed with gensim, see
:mod:`ltr_features.sources.wikipedia_sections`: sections are documents, queries are words of other
sections of the same articles, relevance is graded by shared links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse.linalg
from numpy.typing import NDArray

from letor.column_names import write_rows
from letor.errors import InputError
from letor.files import atomic_path
from letor.folds import Fold, k_fold
from letor.trec import write_qrels, write_run
from ltr_base.blas import one_blas_thread
from ltr_base.quiet import ignored
from ltr_features.columns.context import ColumnContext
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.remarks import ColumnWarning
from ltr_features.sources.wikipedia import excerpt_path
from ltr_features.sources.wikipedia_sections import section_collection
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.candidates import BM25Retriever
from ltr_features.text.collection import Collection, Judgements, Pairs
from ltr_features.text.collection_files import save_collection
from ltr_features.text.index import TermIndex
from ssi_models.weighting import TfIdf

#: Number of articles, documents per query in runs and LETOR files, dimensions of vectors.
N_ARTICLES, DEPTH, WIDTH = 30, 20, 64
#: Names of the grades in the table of ratings.
RATINGS = {2: "Exact", 1: "Partial", 0: "None"}

_README = """\
{n_documents} documents and {n_queries} queries, the same in every form.

csv/       documents.csv, ratings.csv ({ratings}; None: found by BM25, not relevant)
beir/      corpus.jsonl, queries.jsonl, qrels/train.tsv, qrels/test.tsv
trec/      documents.trec, topics.txt (id:text), qrels.txt
runs/      bm25.run and lsa.run, rankings of the best {depth} documents of each query
letor/     Fold1/train.txt, vali.txt, test.txt: the 46 LETOR columns, #docid in the comments
vectors/   documents.npy and queries.npy, float32, {width} numbers a row, and the ids of their rows
           in documents.txt and queries.txt
training_queries.txt   ids of the training queries: those of letor/Fold1/train.txt
groups.tsv             the article that each query was made from, which groups the queries

Queries are random words of sections that are not in the documents. They are not questions that
people ask, so what helps here need not help elsewhere. Texts: see LICENCE.txt.
"""
_LICENCE = """\
The texts are sections of articles of the English Wikipedia, by its authors, who are named in the
history of each article. They are available under the Creative Commons Attribution-ShareAlike
licence (https://creativecommons.org/licenses/by-sa/4.0/); markup was removed from them. Articles:

{articles}
"""


def write_sample(folder: str | os.PathLike[str]) -> Collection:
    """Write the sample into a new folder, with the same bytes each time.

    Returns:
        The collection that all files hold.

    Raises:
        InputError: something is at ``folder`` already, or gensim's excerpt is missing.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not empty; name a new folder")
    collection = _sample()
    articles = list(dict.fromkeys(collection.query_groups or ()))
    index = TermIndex.build(collection, Analyzer(stopwords="english"))
    context = ColumnContext(collection, index)
    folds = k_fold(collection.query_ids, 5, seed=0)
    with atomic_path(folder, kind="folder") as partial:
        for name in ("csv", "beir", "trec", "runs", "letor", "vectors"):
            (partial / name).mkdir(parents=True)
        pairs, scores = BM25Retriever(index).top(context.query_counts, DEPTH)
        _write_run(collection, pairs, scores, partial / "runs" / "bm25.run")
        _write_csv(collection, pairs, partial / "csv")
        _write_beir(collection, folds[0], partial / "beir")
        _write_trec(collection, partial / "trec")
        _write_vectors(context, partial)
        _write_letor(context, folds, partial / "letor")
        _write_lines(partial / "training_queries.txt", folds[0].train)
        _write_lines(
            partial / "groups.tsv",
            map("\t".join, zip(collection.query_ids, collection.query_groups or (), strict=True)),
        )
        readme = _README.format(
            n_documents=len(collection.document_ids), n_queries=len(collection.query_ids),
            ratings=", ".join(RATINGS.values()), depth=DEPTH, width=WIDTH,
        )  # fmt: skip
        (partial / "README.txt").write_text(readme, encoding="utf-8", newline="\n")
        licence = _LICENCE.format(articles="\n".join(articles))
        (partial / "LICENCE.txt").write_text(licence, encoding="utf-8", newline="\n")
    return collection


def _sample() -> Collection:
    """The documents and queries of the first articles of the excerpt."""
    whole = section_collection(excerpt_path())
    groups = np.array(whole.query_groups, dtype=object)
    articles = list(dict.fromkeys(groups.tolist()))[:N_ARTICLES]
    of_document = [title.split(": ")[0] for title in whole.fields["title"]]
    documents = np.flatnonzero(np.isin(np.array(of_document, dtype=object), articles))
    queries = np.flatnonzero(np.isin(groups, articles))
    judged = whole.judgements
    kept = np.isin(judged.query, queries) & np.isin(judged.document, documents)
    return Collection(
        name="sample of Wikipedia sections",
        document_ids=_chosen(whole.document_ids, documents),
        fields={name: _chosen(whole.fields[name], documents) for name in ("title", "body", "url")},
        query_ids=_chosen(whole.query_ids, queries),
        query_texts=_chosen(whole.query_texts, queries),
        judgements=Judgements(
            np.searchsorted(queries, judged.query[kept]),
            np.searchsorted(documents, judged.document[kept]),
            judged.grade[kept],
        ),
        query_groups=_chosen(groups.tolist(), queries),
        withheld=whole.withheld,
    )


def _chosen(values: Sequence[str], rows: NDArray[np.int64]) -> list[str]:
    return [values[row] for row in rows.tolist()]


def _named(collection: Collection, pairs: Pairs | Judgements, **columns: Any) -> pd.DataFrame:
    """A frame of pairs with their ids."""
    ids = {
        "qid": np.array(collection.query_ids, dtype=object)[pairs.query],
        "docno": np.array(collection.document_ids, dtype=object)[pairs.document],
    }
    return pd.DataFrame(ids | columns)


def _qrels(collection: Collection) -> pd.DataFrame:
    return _named(collection, collection.judgements, label=collection.judgements.grade)


def _write_run(
    collection: Collection, pairs: Pairs, scores: NDArray[np.floating], path: Path
) -> None:
    write_run(_named(collection, pairs, score=scores), path, tag=path.stem)


def _write_csv(collection: Collection, pairs: Pairs, folder: Path) -> None:
    """Write documents, and ratings: relevant pairs, and up to five of BM25's that are not."""
    documents = pd.DataFrame({"id": collection.document_ids, **collection.fields})
    documents.rename(columns={"body": "text"}).to_csv(
        folder / "documents.csv", index=False, lineterminator="\n"
    )
    relevant = _qrels(collection)
    found = _named(collection, pairs, label=0)
    known = set(zip(relevant["qid"], relevant["docno"], strict=True))
    other = [pair not in known for pair in zip(found["qid"], found["docno"], strict=True)]
    ratings = pd.concat([relevant, found[other].groupby("qid", sort=False).head(5)])
    order = {query: row for row, query in enumerate(collection.query_ids)}
    ratings = ratings.sort_values("qid", key=lambda qid: qid.map(order), kind="stable")
    texts = dict(zip(collection.query_ids, collection.query_texts, strict=True))
    table = pd.DataFrame(
        {
            "query": ratings["qid"].map(texts),
            "document": ratings["docno"],
            "label": ratings["label"].map(RATINGS),
        }
    )
    table.to_csv(folder / "ratings.csv", index=False, lineterminator="\n")


def _write_beir(collection: Collection, fold: Fold, folder: Path) -> None:
    """BEIR's layout: the fold's test queries are for testing, all others for training."""
    save_collection(collection, folder)
    for name in ("qrels.tsv", "collection.json"):
        (folder / name).unlink()
    (folder / "qrels").mkdir()
    qrels = _qrels(collection)
    tests = qrels["qid"].isin(fold.test)
    for name, rows in (("train", ~tests), ("test", tests)):
        chosen = qrels[rows].itertuples(index=False)
        lines = (f"{row.qid}\t{row.docno}\t{row.label}" for row in chosen)
        path = folder / "qrels" / f"{name}.tsv"
        _write_lines(path, ("query-id\tcorpus-id\tscore", *lines))


def _write_trec(collection: Collection, folder: Path) -> None:
    rows = zip(collection.document_ids, *collection.fields.values(), strict=True)
    documents = (dict(zip(("id", *collection.fields), row, strict=True)) for row in rows)
    _write_lines(folder / "documents.trec", map(_trec_record, documents))
    texts = zip(collection.query_ids, collection.query_texts, strict=True)
    _write_lines(folder / "topics.txt", map(":".join, texts))
    write_qrels(_qrels(collection), folder / "qrels.txt")


def _trec_record(document: Mapping[str, str]) -> str:
    title, body = (escape(document[name], quote=False) for name in ("title", "body"))
    return (
        f"<DOC>\n<DOCNO>{document['id']}</DOCNO>\n<TITLE>{title}</TITLE>\n<TEXT>\n{body}\n</TEXT>\n"
        "</DOC>"
    )


def _write_vectors(context: ColumnContext, folder: Path) -> None:
    """Write unit vectors by LSA (truncated SVD of tf-idf rows), and the run by their cosines."""
    collection, counts = context.collection, context.index.counts("whole")
    weighting = TfIdf().fit(counts)
    D, Q = weighting.transform(counts), weighting.transform(context.query_counts)
    start = np.full(min(D.shape), 1.0)
    # Sums of a multi-threaded BLAS depend on the number of threads.
    with one_blas_thread():
        _, _, Vt = scipy.sparse.linalg.svds(D, k=WIDTH, v0=start)
        Vt *= np.sign(Vt[np.arange(WIDTH), np.abs(Vt).argmax(axis=1)])[:, None]
        embedded = {"documents": _unit(D @ Vt.T), "queries": _unit(Q @ Vt.T)}
        scores = embedded["queries"] @ embedded["documents"].T
    for name, vectors in embedded.items():
        np.save(folder / "vectors" / f"{name}.npy", vectors)
        ids = collection.document_ids if name == "documents" else collection.query_ids
        _write_lines(folder / "vectors" / f"{name}.txt", ids)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    queries = np.repeat(np.arange(len(best)), DEPTH)
    pairs = Pairs(queries, best.ravel())
    _write_run(collection, pairs, scores[queries, best.ravel()], folder / "runs" / "lsa.run")


def _unit(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32: the rows scaled to length 1; rows of zeros stay."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norms == 0, 1, norms), dtype=np.float32)


def _write_letor(context: ColumnContext, folds: Sequence[Fold], folder: Path) -> None:
    """Write the first fold, with the 46 columns."""
    with ignored("candidates:", category=ColumnWarning):  # so few of them, to keep the file small
        parts = FeatureBuilder(["letor46"], depth=DEPTH).folds(context, folds)[0]
    for name, part in zip(("train", "vali", "test"), parts, strict=True):
        write_rows(part, folder / folds[0].name / f"{name}.txt")


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
