"""How much a gain is overstated when queries are drawn from documents of the collection.

    python tests/benchmarks/bench_query_sources.py

The demo's documents are searched by ten random words of a section, either of one that is no
document ("outside") or of a document, which is then no candidate of its query ("inside"). The
(other) documents of its article are relevant, all with the same grade. LambdaMART ranks by the 46
columns of LETOR, with the tf-idf cosine, and with LSA, in five folds by article. NDCG@10 counts all
relevant documents. Takes about half a minute.

===========  ==================  ==================
             735 outside         769 inside
===========  ==================  ==================
46 columns   .3386               .3309
and vsm      .3408   (+0.7 %)    .3308   (-0.0 %)
and LSA      .4254  (+25.6 %)    .5239  (+58.3 %)
===========  ==================  ==================
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from letor.evaluation import evaluate
from letor.folds import k_fold
from letor.measures import parse_measure
from letor.rankers.registry import get_ranker
from ltr_features.columns.learned import LearnedColumn
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.sources.wikipedia import excerpt_path
from ltr_features.sources.wikipedia_sections import section_collection
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection, Judgements

N_WORDS, MIN_DOCUMENTS = 10, 5
LAMBDAMART = {
    "n_estimators": 200, "learning_rate": 0.15, "num_leaves": 15, "min_data_in_leaf": 50,
    "feature_fraction": 0.7, "bagging_fraction": 0.8, "early_stopping_rounds": 20,
    "measure": "ndcg@10", "normalise": "minmax", "num_threads": 1,
}  # fmt: skip
SYSTEMS = {"46 columns": [], "and vsm": ["vsm"], "and vsm, LSA": ["vsm", "lsa"]}
MEASURES = [parse_measure("NDCG@10")]  # of all relevant documents, not of candidates alone


def outside() -> Collection:
    """The demo's collection with all relevant documents alike."""
    collection = section_collection(excerpt_path())
    judged = collection.judgements
    alike = replace(judged, grade=np.minimum(judged.grade, 1))
    return replace(collection, judgements=alike)


def inside(collection: Collection) -> Collection:
    """The same documents, with queries drawn from them."""
    analyzer = Analyzer(stopwords="english")
    bodies = [
        {word for word in analyzer.tokens(text) if len(word) >= 3 and word.isalpha()}
        for text in collection.fields["body"]
    ]
    words, counts = np.unique([w for body in bodies for w in body], return_counts=True)
    frequent = set(words[counts >= MIN_DOCUMENTS].tolist())
    articles = np.array([name.split("~")[0] for name in collection.document_ids])
    texts, sources, judged = [], [], []
    for row, body in enumerate(bodies):
        eligible = sorted(body & frequent)
        others = np.setdiff1d(np.flatnonzero(articles == articles[row]), row)
        if len(eligible) >= N_WORDS and len(others):
            drawn = np.random.default_rng([0, row]).choice(eligible, N_WORDS, replace=False)
            judged += [(len(texts), other, 1) for other in others]
            texts.append(" ".join(drawn))
            sources.append(row)
    return replace(
        collection,
        query_ids=[f"q{number}" for number in range(len(texts))],
        query_texts=texts,
        judgements=Judgements(*np.array(judged, dtype=np.int64).T.copy()),
        query_sources=np.array(sources, dtype=np.int64),
        query_groups=articles[sources].tolist(),
        withheld=None,
    )


def measured(collection: Collection) -> dict[str, float]:
    """Mean NDCG@10 of each system over all queries."""
    lsa = LearnedColumn("lsa", "lsa", {"rank": 50}, min_document_frequency=3)
    folds = k_fold(collection.query_ids, 5, seed=0, groups=collection.query_groups)
    builder = FeatureBuilder(["letor46", "vsm"], [lsa], depth=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that queries are drawn from documents is known here
        parts = builder.folds(collection, folds)
    totals = dict.fromkeys(SYSTEMS, 0.0)
    for name, more in SYSTEMS.items():
        for fold in parts:
            columns = [*fold[0].column_names[:46], *more]
            train, vali, test = (rows.select_columns(columns) for rows in fold)
            ranker = get_ranker("lambdamart")(**LAMBDAMART).fit(train, vali)
            totals[name] += evaluate(test, ranker.predict(test), MEASURES).to_numpy().sum()
    return {name: total / collection.n_queries for name, total in totals.items()}


def main() -> None:
    first = outside()
    for name, collection in (("outside", first), ("inside", inside(first))):
        found = measured(collection)
        base = found["46 columns"]
        print(f"{name}, {collection.n_queries} queries of {collection.n_documents} documents")
        for system, value in found.items():
            print(f"  {system:14} {value:.4f}  {100 * (value / base - 1):+.1f} %")


if __name__ == "__main__":
    main()
