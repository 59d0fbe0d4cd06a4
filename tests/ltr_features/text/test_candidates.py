import gzip
import json
import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from toys import toy

from letor.errors import InputError
from ltr_features.text.bm25 import BM25
from ltr_features.text.candidates import BM25Retriever, candidate_recall
from ltr_features.text.collection import Judgements, Pairs
from ltr_features.text.index import TermIndex


def index_of(texts):
    return TermIndex.build(toy({"body": texts}))


def random_texts(seed, n, longest, n_words=60):
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i:03d}" for i in range(n_words)])
    share = 1 / np.arange(1, n_words + 1)
    return [
        " ".join(rng.choice(words, rng.integers(0, longest), p=share / share.sum()))
        for _ in range(n)
    ]


def slow_bm25(texts, query, k1, b, k3):
    """The formula of ltr_features.text.bm25 on raw tokens."""
    documents = [Counter(text.split()) for text in texts]
    mean = sum(sum(d.values()) for d in documents) / len(documents)
    scores = []
    for d in documents:
        score = 0.0
        for t, qtf in Counter(query.split()).items():
            df = sum(t in other for other in documents)
            if d[t]:
                norm = k1 * (1 - b + b * sum(d.values()) / mean)
                score += (
                    math.log(len(documents) / df)
                    * (d[t] * (k1 + 1) / (d[t] + norm))
                    * ((k3 + 1) * qtf / (k3 + qtf))
                )
        scores.append(score)
    return scores


@pytest.mark.parametrize("parameters", [(1.2, 0.75, 0.0), (2.5, 0.8, 7.0), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("depth", [1, 5, 500])
def test_retrieval_equals_the_slow_formula(parameters, depth):
    texts, queries = random_texts(1, 70, 30), random_texts(2, 20, 8)
    index = index_of(texts)
    retriever = BM25Retriever(index, bm25=BM25(*parameters))
    pairs, scores = retriever.top(index.query_counts(queries), depth)
    for row, query in enumerate(queries):
        expected = np.array(slow_bm25(texts, query, *parameters))
        mine = pairs.query == row
        assert mine.sum() == min(depth, (expected > 0).sum())
        np.testing.assert_allclose(scores[mine], expected[pairs.document[mine]], rtol=1e-12)
        np.testing.assert_allclose(scores[mine], -np.sort(-expected)[: mine.sum()], rtol=1e-12)
        assert len(set(pairs.document[mine])) == mine.sum()


def test_of_many_queries_each_has_the_documents_that_it_has_alone():
    index = index_of(random_texts(1, 70, 30))
    retriever, counts = BM25Retriever(index), index.query_counts(random_texts(2, 600, 8))
    pairs, scores = retriever.top(counts, 5)
    for row in range(0, 600, 37):
        alone, of_alone = retriever.top(counts[row], 5)
        mine = pairs.query == row
        np.testing.assert_array_equal(pairs.document[mine], alone.document)
        np.testing.assert_array_equal(scores[mine], of_alone)


def test_equal_scores_are_ordered_by_document_row():
    index = index_of(["owl", "red fox", "fox red", "fox red", "red fox", "owl"])
    pairs = BM25Retriever(index).top(index.query_counts(["fox"]), 3)[0]
    assert pairs.document.tolist() == [1, 2, 3]
    pairs = BM25Retriever(index).top(index.query_counts(["fox"]), 10)[0]
    assert pairs.document.tolist() == [1, 2, 3, 4]


def test_pools_of_queries_without_candidates_are_empty():
    index = index_of(["red fox", "red owl"])
    # "red" is in every document: its idf is 0.
    counts = index.query_counts(["", "unicorn", "red", "owl"])
    pairs = BM25Retriever(index).top(counts, 5)[0]
    assert pairs.query.tolist() == [3]
    assert pairs.document.tolist() == [1]
    assert len(BM25Retriever(index).top(index.query_counts([]), 5)[0]) == 0


def test_threads_do_not_change_the_pool():
    texts, queries = random_texts(3, 300, 40), random_texts(4, 700, 6)
    index = index_of(texts)
    counts = index.query_counts(queries)
    one = BM25Retriever(index).top(counts, 20, threads=1)
    three = BM25Retriever(index).top(counts, 20, threads=3)
    np.testing.assert_array_equal(one[0].query, three[0].query)
    np.testing.assert_array_equal(one[0].document, three[0].document)
    np.testing.assert_array_equal(one[1], three[1])


def assert_equal_to_bm25s(texts, queries, depth):
    peer = bm25s.BM25(k1=1.2, b=0.75, method="atire", dtype="float64")
    index = index_of(texts)
    analyzer = index.analyzer
    peer.index([analyzer.tokens(text) for text in texts], show_progress=False)
    pairs, scores = BM25Retriever(index).top(index.query_counts(queries), depth)
    known = set(index.vocabulary.words)
    compared = 0
    for row, query in enumerate(queries):
        tokens = sorted(set(analyzer.tokens(query)) & known)
        if not tokens:
            continue
        expected = np.asarray(peer.get_scores(tokens))
        mine = pairs.query == row
        np.testing.assert_allclose(scores[mine], expected[pairs.document[mine]], rtol=1e-6)
        best = -np.sort(-expected)[: mine.sum()]
        np.testing.assert_allclose(scores[mine], best, rtol=1e-6)
        compared += mine.sum()
    return compared


def test_scores_equal_bm25s():
    compared = assert_equal_to_bm25s(random_texts(5, 200, 50), random_texts(6, 40, 6), 50)
    assert compared > 1000


@pytest.mark.data
def test_scores_equal_bm25s_on_cranfield(data_folder):
    folder = data_folder / "cranfield"
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [document["title"] + " " + document["text"] for document in map(json.loads, lines)]
    with open(folder / "queries.jsonl", encoding="utf-8") as lines:
        queries = [query["text"] for query in map(json.loads, lines)]
    assert len(texts) == 1400
    assert assert_equal_to_bm25s(texts, queries, 100) > 20_000


def test_recall_counts_relevant_pairs_once():
    judgements = Judgements(
        query=np.array([0, 0, 0, 0, 1, 2]),
        document=np.array([0, 1, 2, 2, 5, 3]),
        grade=np.array([1, 2, 1, 1, 0, 1]),
    )
    pool = Pairs(np.array([0, 0, 1, 2]), np.array([1, 2, 5, 4]))
    recall = candidate_recall(pool, judgements, 4)
    assert recall.n_relevant == 4
    assert recall.n_found == 2
    assert recall.mean == pytest.approx(1 / 3)  # of 2 / 3 and 0: two queries have none
    assert math.isnan(candidate_recall(pool, Judgements.none(), 4).mean)


def test_bad_parameters_are_refused():
    index = index_of(["red fox"])
    with pytest.raises(InputError, match="pool depth must be 1 or more, got 0"):
        BM25Retriever(index).top(index.query_counts(["fox"]), 0)[0]
    with pytest.raises(InputError, match="5 columns, the index has 2 words"):
        BM25Retriever(index).top(index_of(["a1 b1 c1 d1 e1"]).query_counts(["a1"]), 5)[0]
    with pytest.raises(InputError, match="no field 'title'"):
        BM25Retriever(index, "title").top(index.query_counts(["fox"]), 5)[0]
    with pytest.raises(InputError, match="b must lie between 0 and 1, got 2"):
        BM25(b=2)


def test_words_that_a_query_repeats_count_once_by_default():
    index = index_of(["apple pie", "apple apple tree", "pie pie"])
    once, twice = (
        BM25Retriever(index).top(index.query_counts([query]), 3)
        for query in ("apple pie", "apple apple apple pie")
    )
    np.testing.assert_array_equal(once[0].document, twice[0].document)
    np.testing.assert_array_equal(once[1], twice[1])
    more = BM25Retriever(index, bm25=BM25(k3=1)).top(
        index.query_counts(["apple apple apple pie"]), 3
    )
    assert (more[1] > twice[1]).any()
