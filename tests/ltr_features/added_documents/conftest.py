"""A pipeline, and the same with documents added."""

from __future__ import annotations

import pytest
from additions import news
from toys import topics

from letor.folds import k_fold
from letor.rankers import LambdaMART
from ltr_features import FeatureBuilder, LearnedColumn, ScoringPipeline


@pytest.fixture(scope="module")
def collection():
    return topics()


@pytest.fixture(scope="module")
def pipeline(collection):
    models = [
        LearnedColumn("lsa", "lsi", {"rank": 4}, terms="both"),
        LearnedColumn("unigram", "unigram"),
        LearnedColumn(
            "ssi", "ssi", {"rank": 4, "max_epochs": 1}, min_document_frequency=2, heaviest=6
        ),
    ]
    builder = FeatureBuilder(["letor46", "vsm"], models, depth=12, threads=1)
    folds = k_fold(collection.query_ids, 4, seed=0)
    train, vali, _ = builder.folds(collection, folds)[0]
    ranker = LambdaMART(n_estimators=10, min_data_in_leaf=5, normalise="none").fit(train, vali)
    return ScoringPipeline(builder.fit(collection, folds[0].train, folds=folds), ranker)


@pytest.fixture(scope="module")
def more(pipeline, collection):
    return pipeline.with_documents(*news(collection))
