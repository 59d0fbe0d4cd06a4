"""A builder and a pipeline, fitted once for each file of tests."""

from __future__ import annotations

import numpy as np
import pytest
from builders import MODELS, N_DOCUMENTS, N_QUERIES, N_TOPICS
from toys import toy

from letor.folds import k_fold
from letor.rankers.lambdamart import LambdaMART
from ltr_features import FeatureBuilder, ScoringPipeline
from ltr_features.text.collection import Judgements


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(4)
    documents = [
        " ".join([*(f"t{d % N_TOPICS}w{w}" for w in rng.integers(5, size=6)),
                  *(f"common{w}" for w in rng.integers(9, size=7))])
        for d in range(N_DOCUMENTS)
    ]  # fmt: skip
    texts = [f"t{q % N_TOPICS}w{q % 5} common{q % 9} common{(q + 2) % 9}" for q in range(N_QUERIES)]
    texts[-1] = "wordless"
    query, document = np.nonzero(
        np.arange(N_QUERIES)[:, None] % N_TOPICS == np.arange(N_DOCUMENTS) % N_TOPICS
    )
    fields = {"body": documents, "title": [text.split()[0] for text in documents]}
    judged = Judgements(query, document, np.ones(len(query), np.int64))
    return toy(fields, texts, judged, name="topics")


@pytest.fixture(scope="module")
def folds(collection):
    return k_fold(collection.query_ids, 4, seed=0)


@pytest.fixture(scope="module")
def builder(collection, folds, tmp_path_factory):
    made = FeatureBuilder(
        {"letor46": {"mu": 500.0}, "vsm": {}},
        MODELS,
        depth=20,
        models_folder=tmp_path_factory.mktemp("models"),
    )
    return made.fit(collection, folds[0].train, folds=folds)


@pytest.fixture(scope="module")
def parts(builder, collection, folds):
    return builder.folds(collection, folds)[0]


@pytest.fixture(scope="module")
def pipeline(builder, parts):
    ranker = LambdaMART(n_estimators=20, min_data_in_leaf=5).fit(parts[0], parts[1])
    return ScoringPipeline(builder, ranker)
