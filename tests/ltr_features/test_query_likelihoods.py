"""Columns of topic and translation models: what they score, and that no label leaks to its row."""

import numpy as np
import pytest

from letor.errors import InputError
from ltr_features.build import fold_scores
from ltr_features.collection import Collection, Judgements, Pairs
from ltr_features.columns.query_likelihoods import MODELS, TrainedLikelihoods
from ltr_features.columns.registry import ColumnContext
from ltr_features.index import TermIndex

N_QUERIES, N_DOCUMENTS = 24, 40
PARTS = [np.arange(p, 18, 3) for p in range(3)]  # queries 0..17 train, 18..23 do not


def asked(grade=1):
    """Query i speaks of topic i % 4 in words of its own; document j is of topic j % 4. Only query
    0 has the word "planted", and only document 3, of another topic, "sown"; ``grade`` judges
    them."""
    titles = [f"title{j % 4}x{j % 3} title{j % 4}x{j % 5} common" for j in range(N_DOCUMENTS)]
    titles[3] += " sown"
    titles[8] += " planted"
    queries = [f"query{i % 4}x{i % 2} query{i % 4}x{i % 3}" for i in range(N_QUERIES)]
    queries[0] += " planted"
    pairs = [(i, j, 1) for i in range(N_QUERIES) for j in range(N_DOCUMENTS) if i % 4 == j % 4]
    judged = np.array([*pairs, (0, 3, grade)], dtype=np.int64).T
    return Collection(
        name="asked",
        document_ids=[f"d{j}" for j in range(N_DOCUMENTS)],
        # Queries' words occur in the bodies, so that the index knows them.
        streams={"title": titles, "body": [" ".join(queries)] * N_DOCUMENTS},
        query_ids=[f"q{i}" for i in range(N_QUERIES)],
        query_texts=queries,
        judgements=Judgements(*judged),
    )


def context_of(collection):
    return ColumnContext.of(collection, TermIndex.build(collection), threads=1)


def params_of(name):
    return {} if name == "wtm" else {"n_topics": 4, "seed": 1}


EVERY = Pairs(
    np.repeat(np.arange(N_QUERIES), N_DOCUMENTS), np.tile(np.arange(N_DOCUMENTS), N_QUERIES)
)


@pytest.mark.parametrize("name", MODELS)
def test_a_planted_label_cannot_reach_its_own_row(name, tmp_path):
    columns = []
    for grade in (0, 1):
        scores = TrainedLikelihoods(
            context_of(asked(grade)), name, params_of(name), tmp_path / str(grade)
        )
        columns.append(fold_scores(scores, EVERY, PARTS)[EVERY.query == 0])
    assert np.isfinite(columns[0]).all()
    np.testing.assert_array_equal(columns[0], columns[1])


@pytest.mark.parametrize("name", ["bltm", "bltm-pr", "bltm-pr-1v", "wtm"])
def test_models_rank_titles_that_share_no_word_with_the_query(name, tmp_path):
    scores = TrainedLikelihoods(context_of(asked()), name, params_of(name), tmp_path, mixed=False)
    found = scores(np.concatenate(PARTS), EVERY).reshape(N_QUERIES, N_DOCUMENTS)[18:]
    best = found.argsort(axis=1)[:, -5:] % 4
    assert (best == np.arange(18, 24)[:, None] % 4).mean() > 0.8


def test_both_columns_share_one_model_file(tmp_path):
    context = context_of(asked())
    alone, mixed = (
        TrainedLikelihoods(context, "bltm", params_of("bltm"), tmp_path, mixed=m) for m in (0, 1)
    )
    seen = []
    mixed.on_iteration = lambda key, line: seen.append(key)
    train = np.concatenate(PARTS)
    first = alone(train, EVERY)
    assert (alone.column.name, mixed.column.name) == ("bltm", "bltm_mixed")
    assert not np.array_equal(mixed(train, EVERY), first)
    assert seen == []
    np.testing.assert_array_equal(alone(train, EVERY), first)
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]


def test_plsa_learns_from_titles_alone(tmp_path):
    scores = TrainedLikelihoods(context_of(asked()), "plsa", params_of("plsa"), tmp_path)
    np.testing.assert_array_equal(scores(PARTS[0], EVERY), scores(PARTS[1], EVERY))
    assert scores.path(PARTS[0]) == scores.path(PARTS[1])


def test_unknown_models_and_streams_and_queries_without_labels_are_refused(tmp_path):
    context = context_of(asked())
    with pytest.raises(InputError, match="no model 'lda'; there are plsa"):
        TrainedLikelihoods(context, "lda", {}, tmp_path)
    with pytest.raises(InputError, match="no stream 'keywords'"):
        TrainedLikelihoods(context, "bltm", {}, tmp_path, stream="keywords")
    with pytest.raises(InputError, match="none of the 0 training queries"):
        TrainedLikelihoods(context, "bltm", {}, tmp_path)(np.zeros(0, np.int64), EVERY)
