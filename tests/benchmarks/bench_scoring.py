"""Time to score 1,000 candidates of one query, documents' representations cached.

    python tests/benchmarks/bench_scoring.py [n_documents]

Columns: LETOR's 46, the tf-idf cosine, SSI and LSA of rank 100; the ranker is LambdaMART
with 200 trees of 15 leaves. The text is generated: Zipf-distributed words, 150 to a document.
"""

import sys

import numpy as np
from timing import seconds_of

from letor.folds import k_fold
from ltr_features import Collection, FeatureBuilder, LearnedColumn, ScoringPipeline, get_ranker
from ltr_features.text.collection import Judgements

N_CANDIDATES, N_QUERIES = 1000, 200


def collection(n_documents: int) -> Collection:
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.25, size=(n_documents, 150)), 50_000)
    bodies = [" ".join(f"w{w}" for w in row) for row in words]
    query = np.repeat(np.arange(N_QUERIES), 10)
    pairs = np.unique(np.stack([query, rng.integers(n_documents, size=len(query))]), axis=1)
    first = pairs[1][np.searchsorted(pairs[0], np.arange(N_QUERIES))]
    texts = [" ".join(bodies[d].split()[:6]) for d in first]
    return Collection(
        name="generated",
        document_ids=[f"d{d}" for d in range(n_documents)],
        fields={"body": bodies, "title": [" ".join(body.split()[:8]) for body in bodies]},
        query_ids=[f"q{q}" for q in range(N_QUERIES)],
        query_texts=texts,
        judgements=Judgements(pairs[0], pairs[1], np.ones(pairs.shape[1], np.int64)),
    )


def pipeline_of(data: Collection) -> ScoringPipeline:
    models = [
        LearnedColumn("ssi", "ssi", {"rank": 100, "max_epochs": 1}, min_document_frequency=3),
        LearnedColumn("lsa", "lsi", {"rank": 100}, min_document_frequency=3),
    ]
    features = FeatureBuilder(["letor46", "vsm"], models, threads=1)
    folds = k_fold(data.query_ids, 4, seed=0)
    train, vali, _ = features.folds(data, folds)[0]
    ranker = get_ranker("lambdamart")(n_estimators=200, early_stopping_rounds=200).fit(train, vali)
    return ScoringPipeline(features.fit(data, folds[0].train, folds=folds), ranker)


def main() -> None:
    n_documents = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    data = collection(n_documents)
    pipeline = pipeline_of(data)
    docnos = data.document_ids[:N_CANDIDATES]
    pipeline.score(data.query_texts[0], docnos)  # representations are cached here
    times = [seconds_of(pipeline.score, text, docnos) for text in data.query_texts]
    best, median, slow = np.percentile(np.array(times) * 1e3, [5, 50, 95])
    print(
        f"{n_documents:,} documents, {len(pipeline.features.column_names)} columns, {N_CANDIDATES} "
        f"candidates: median {median:.1f} ms (5 % {best:.1f}, 95 % {slow:.1f})"
    )


if __name__ == "__main__":
    main()
