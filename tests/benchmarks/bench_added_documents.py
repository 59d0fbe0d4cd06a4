"""Documents that come after the build: what adding them costs, and what is lost by not rebuilding.

    python tests/benchmarks/bench_added_documents.py [n_documents]

First the times, on the generated text and with the pipeline of bench_scoring.py: 1 per cent of the
documents is added to the rest. Then NDCG@10 on the sections of Wikipedia articles that the demo
searches: of the documents a share is kept out of the build (statistics, LSA, ranker) and added
afterwards; the same documents are ranked by a pipeline that was built of all of them.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from bench_scoring import N_CANDIDATES, collection, pipeline_of
from page import processor
from timing import seconds_of, timed

from letor.evaluation import evaluate
from letor.folds import k_fold
from ltr_features import (
    Collection,
    FeatureBuilder,
    LearnedColumn,
    ScoringPipeline,
    get_ranker,
    read_collection,
)
from ltr_features.entities.of_dump import EXCERPT_NAME, dump_path
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Judgements


def part_of(data: Collection, rows: np.ndarray) -> Collection:
    """The collection with these documents alone."""
    place = np.full(data.n_documents, -1)
    place[rows] = np.arange(len(rows))
    judged = data.judgements
    kept = place[judged.document] >= 0
    return replace(
        data,
        document_ids=[data.document_ids[row] for row in rows],
        fields={s: [texts[row] for row in rows] for s, texts in data.fields.items()},
        judgements=Judgements(judged.query[kept], place[judged.document[kept]], judged.grade[kept]),
        links=None,
    )


def told(what: str, work: Callable[[], Any]) -> Any:
    seconds, found = timed(work)
    print(f"  {what}: {seconds:.2f} s", flush=True)
    return found


def times(n_documents: int) -> None:
    data = collection(n_documents)
    n_added = n_documents // 100
    rows = np.arange(n_documents)
    there, new = part_of(data, rows[n_added:]), part_of(data, rows[:n_added])
    load = os.getloadavg()[0]
    print(f"{processor()}, {os.cpu_count()} cores, load {load:.1f}; {n_documents:,} documents")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "service"
        pipeline = told(
            "build: rows of the folds, ranker, index and models", lambda: pipeline_of(there)
        )
        told("save", lambda: pipeline.save(folder))
        pipeline = told("load", lambda: ScoringPipeline.load(folder))
        added = told(
            f"add {n_added:,} documents",
            lambda: pipeline.with_documents(new.document_ids, new.fields),
        )
        told("save what was added", lambda: added.save_added(folder))
        told("load with what was added", lambda: ScoringPipeline.load(folder))
    docnos = [*there.document_ids[: N_CANDIDATES - n_added // 2], *new.document_ids[: n_added // 2]]
    for what, asked, ids in (
        (f"{N_CANDIDATES:,} candidates of the build", pipeline, there.document_ids[:N_CANDIDATES]),
        ("as many, of the added ones too", added, docnos),
    ):
        asked.score(data.query_texts[0], ids)
        taken = [seconds_of(asked.score, text, ids) for text in data.query_texts]
        print(f"  {what}: median {np.median(taken) * 1e3:.1f} ms", flush=True)


def built_of(data: Collection, folds: Any) -> ScoringPipeline:
    features = FeatureBuilder(
        ["letor46", "vsm"], [LearnedColumn("lsa", "lsa", min_document_frequency=3)], depth=100
    )
    analyzer = Analyzer(stopwords="english")
    train, vali, _ = features.folds(data, folds, analyzer=analyzer)[0]
    ranker = get_ranker("lambdamart")(n_estimators=300).fit(train, vali)
    return ScoringPipeline(features.fit(data, folds[0].train, analyzer=analyzer), ranker)


def ndcg(pipeline: ScoringPipeline, data: Collection, queries: list[str]) -> float:
    text = dict(zip(data.query_ids, data.query_texts, strict=True))
    run = {}
    for query in queries:
        best = pipeline.rank(text[query], 100)
        run[query] = dict(zip(best["docno"], best["score"].tolist(), strict=True))
    qrels: dict[str, dict[str, int]] = {query: {} for query in queries}
    judged = data.judgements
    for q, d, grade in zip(judged.query, judged.document, judged.grade.tolist(), strict=True):
        if data.query_ids[q] in qrels:
            qrels[data.query_ids[q]][data.document_ids[d]] = grade
    qrels = {query: grades for query, grades in qrels.items() if grades}
    return float(evaluate(qrels, run, ["ndcg@10"]).mean().iloc[0])


def quality() -> None:
    data = read_collection(
        "wikipedia-sections",
        dump=dump_path(EXCERPT_NAME),
        words_per_query=10,
        min_words=40,
        min_document_frequency=5,
    )
    print(f"{data.n_documents} sections of Wikipedia articles, {data.n_queries} queries; NDCG@10")
    found: dict[float, list[tuple[float, float, float]]] = {}
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(data.n_documents)
        folds = k_fold(data.query_ids, 5, seed=seed)
        test = list(folds[0].test)
        whole = part_of(data, np.arange(data.n_documents))
        rebuilt = ndcg(built_of(whole, folds), whole, test)
        for share in (0.1, 0.2, 0.4):
            n = round(share * data.n_documents)
            old, new = part_of(data, np.sort(order[n:])), part_of(data, np.sort(order[:n]))
            pipeline = built_of(old, folds).with_documents(new.document_ids, new.fields)
            added = pipeline.features.added_
            unknown = 0.0 if added is None else added.drift().unknown
            found.setdefault(share, []).append((ndcg(pipeline, whole, test), rebuilt, unknown))
    for share, values in found.items():
        added, rebuilt, unknown = np.mean(values, axis=0)
        differences = ", ".join(f"{a - b:+.4f}" for a, b, _ in values)
        print(
            f"  {share:.0%} added: {added:.4f}, built of all {rebuilt:.4f} ({differences}), "
            f"{unknown:.1%} of the added words unknown",
            flush=True,
        )


if __name__ == "__main__":
    times(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
    quality()
