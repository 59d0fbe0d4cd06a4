import gzip
import json
import math
from collections import Counter
from math import log

import numpy as np
import pytest
from toys import all_pairs, context_of, toy

from letor.errors import InputError
from ltr_features.columns.letor46 import LETOR46_COLUMNS, Letor46
from ltr_features.text.collection import Links, Pairs
from ltr_features.text.index import TermIndex


@pytest.fixture(scope="module")
def three_documents():
    return toy(
        {
            "title": ["apple pie", "banana", ""],
            "body": ["apple apple banana", "banana cherry", ""],
            "anchor": ["pie", "", "apple apple apple"],
            "url": [
                "http://ex.org/apple/",
                "http://ex.org/apple/banana.html",
                "http://ex.org/apple/pie",
            ],
        },
        ["apple banana", "banana unicorn banana", "unicorn", ""],
        links=Links(np.array([0, 0, 0, 1, 2]), np.array([1, 1, 2, 2, 2])),
    )


# The query "apple banana" on the three documents, worked out by hand with k1 = 2.5, b = .8, k3 = 0,
# delta = .7, mu = 2000, lambda = .1. Counts (apple, banana; length, distinct words) per document:
#   body    (2,1; 3,2)  (0,1; 2,2)  (0,0; 0,0)   mean length 5/3, p = 2/5, 2/5, df = 1, 2
#   anchor  (0,0; 1,1)  (0,0; 0,0)  (3,0; 3,1)   mean length 4/3, p = 3/4, 0,   df = 1, 0
#   title   (1,0; 2,2)  (0,1; 1,1)  (0,0; 0,0)   mean length 1,   p = 1/3, 1/3, df = 1, 1
#   url     (1,0; 4,4)  (1,1; 6,6)  (1,0; 5,5)   mean length 5,   p = 3/15, 1/15, df = 3, 1
#   whole   (4,1; 10,6) (1,3; 9,7)  (4,0; 8,5)   mean length 9,   p = 9/27, 4/27, df = 3, 2
# "banana" is left out of anchor, where no document has it.
BY_HAND = {
    "tf_body": [3, 1, 0],
    "tf_anchor": [0, 0, 3],
    "tf_title": [1, 1, 0],
    "tf_url": [1, 2, 1],
    "tf_whole": [5, 4, 4],
    "idf_body": [log(3) + log(1.5)] * 3,
    "idf_anchor": [log(3)] * 3,
    "idf_title": [2 * log(3)] * 3,
    "idf_url": [log(3)] * 3,
    "idf_whole": [log(1.5)] * 3,
    "tfidf_body": [2 * log(3) + log(1.5), log(1.5), 0],
    "tfidf_anchor": [0, 0, 3 * log(3)],
    "tfidf_title": [log(3), log(3), 0],
    "tfidf_url": [0, log(3), 0],
    "tfidf_whole": [log(1.5), 3 * log(1.5), 0],
    "dl_body": [3, 2, 0],
    "dl_anchor": [1, 0, 3],
    "dl_title": [2, 1, 0],
    "dl_url": [4, 6, 5],
    "dl_whole": [10, 9, 8],
    # k1 (1 - b + b |d| / avgdl): body 4.1, 2.9; anchor d2 5; title 4.5, 2.5; url d1 2.9
    "bm25_body": [log(3) * 7 / 6.1 + log(1.5) * 3.5 / 5.1, log(1.5) * 3.5 / 3.9, 0],
    "bm25_anchor": [0, 0, log(3) * 10.5 / 8],
    "bm25_title": [log(3) * 3.5 / 5.5, log(3), 0],
    "bm25_url": [0, log(3) * 3.5 / 3.9, 0],
    "bm25_whole": [
        log(1.5) * 3.5 / (1 + 2.5 * (0.2 + 8 / 9)),
        log(1.5) * 10.5 / 5.5,
        0,
    ],
    "lmir_abs_body": [
        log(1.3 / 3 + 0.7 * 2 / 3 * 0.4) + log(0.3 / 3 + 0.7 * 2 / 3 * 0.4),
        log(0.7 * 0.4) + log(0.3 / 2 + 0.7 * 0.4),
        2 * log(0.7 * 0.4),
    ],
    "lmir_abs_anchor": [log(0.7 * 0.75), log(0.7 * 0.75), log(2.3 / 3 + 0.7 / 3 * 0.75)],
    "lmir_abs_title": [
        log(0.3 / 2 + 0.7 / 3) + log(0.7 / 3),
        log(0.7 / 3) + log(0.3 + 0.7 / 3),
        2 * log(0.7 / 3),
    ],
    "lmir_abs_url": [
        log(0.3 / 4 + 0.7 / 5) + log(0.7 / 15),
        log(0.3 / 6 + 0.7 / 5) + log(0.3 / 6 + 0.7 / 15),
        log(0.3 / 5 + 0.7 / 5) + log(0.7 / 15),
    ],
    "lmir_abs_whole": [
        log(3.3 / 10 + 0.7 * 0.6 / 3) + log(0.3 / 10 + 0.7 * 0.6 * 4 / 27),
        log(0.3 / 9 + 0.7 * 7 / 9 / 3) + log(2.3 / 9 + 0.7 * 7 / 9 * 4 / 27),
        log(3.3 / 8 + 0.7 * 5 / 8 / 3) + log(0.7 * 5 / 8 * 4 / 27),
    ],
    "lmir_dir_body": [
        log(802 / 2003) + log(801 / 2003),
        log(800 / 2002) + log(801 / 2002),
        2 * log(800 / 2000),
    ],
    "lmir_dir_anchor": [log(1500 / 2001), log(1500 / 2000), log(1503 / 2003)],
    "lmir_dir_title": [
        log((1 + 2000 / 3) / 2002) + log(2000 / 3 / 2002),
        log(2000 / 3 / 2001) + log((1 + 2000 / 3) / 2001),
        2 * log(1 / 3),
    ],
    "lmir_dir_url": [
        log(401 / 2004) + log(2000 / 15 / 2004),
        log(401 / 2006) + log((1 + 2000 / 15) / 2006),
        log(401 / 2005) + log(2000 / 15 / 2005),
    ],
    "lmir_dir_whole": [
        log((4 + 2000 / 3) / 2010) + log((1 + 8000 / 27) / 2010),
        log((1 + 2000 / 3) / 2009) + log((3 + 8000 / 27) / 2009),
        log((4 + 2000 / 3) / 2008) + log(8000 / 27 / 2008),
    ],
    "lmir_jm_body": [
        log(0.9 * 2 / 3 + 0.04) + log(0.9 / 3 + 0.04),
        log(0.04) + log(0.45 + 0.04),
        2 * log(0.04),
    ],
    "lmir_jm_anchor": [log(0.075), log(0.075), log(0.9 + 0.075)],
    "lmir_jm_title": [
        log(0.45 + 0.1 / 3) + log(0.1 / 3),
        log(0.1 / 3) + log(0.9 + 0.1 / 3),
        2 * log(0.1 / 3),
    ],
    "lmir_jm_url": [
        log(0.9 / 4 + 0.02) + log(0.1 / 15),
        log(0.9 / 6 + 0.02) + log(0.9 / 6 + 0.1 / 15),
        log(0.9 / 5 + 0.02) + log(0.1 / 15),
    ],
    "lmir_jm_whole": [
        log(0.9 * 4 / 10 + 0.1 / 3) + log(0.9 / 10 + 0.4 / 27),
        log(0.9 / 9 + 0.1 / 3) + log(0.9 * 3 / 9 + 0.4 / 27),
        log(0.9 * 4 / 8 + 0.1 / 3) + log(0.4 / 27),
    ],
    # 0 links to 1 and 2, 1 to 2, 2 to none: p0 = .85 p2 / 3 + .05, p1 = .85 p0 / 2 + p0,
    # p2 = .85 p0 / 2 + .85 p1 + p0.
    "pagerank": [1 / 5.06125, 1.425 / 5.06125, 2.63625 / 5.06125],
    "inlinks": [0, 1, 2],
    "outlinks": [2, 1, 0],
    "url_slashes": [4, 4, 4],
    "url_length": [20, 31, 23],
    "child_pages": [2, 0, 0],
}


def test_the_columns_have_letors_names_and_numbers():
    assert [column.name for column in LETOR46_COLUMNS] == list(BY_HAND)
    assert [column.letor_id for column in LETOR46_COLUMNS] == list(range(1, 47))


@pytest.mark.parametrize("column", list(BY_HAND))
def test_every_column_by_hand(three_documents, column):
    pairs = Pairs(np.zeros(3, np.int64), np.arange(3))
    family = Letor46()
    values = family.compute(context_of(three_documents), pairs)
    assert values.dtype == np.float32
    selected = family.select(values, [column])[:, 0]
    np.testing.assert_allclose(selected, BY_HAND[column], rtol=1e-6, atol=1e-7)


def test_families_of_one_context_have_their_own_damping(three_documents):
    context, pairs = context_of(three_documents), Pairs(np.zeros(3, np.int64), np.arange(3))
    family = Letor46()
    np.testing.assert_allclose(
        family.select(family.compute(context, pairs), ["pagerank"])[:, 0], BY_HAND["pagerank"]
    )
    without_links = Letor46(damping=0).compute(context, pairs)
    np.testing.assert_allclose(family.select(without_links, ["pagerank"])[:, 0], [1 / 3] * 3)


def test_repeated_and_unseen_query_words(three_documents):
    # "banana unicorn banana" on document 1
    family = Letor46(k3=7)
    values = family.compute(context_of(three_documents), Pairs(np.array([1]), np.array([1])))
    row = dict(zip(family.column_names, values[0], strict=True))
    assert row["tf_whole"] == 3
    assert row["idf_whole"] == pytest.approx(log(1.5))
    assert row["tfidf_whole"] == pytest.approx(3 * log(1.5))
    assert row["bm25_whole"] == pytest.approx(log(1.5) * 10.5 / 5.5 * 8 * 2 / 9, rel=1e-6)
    assert row["lmir_jm_whole"] == pytest.approx(2 * log(0.9 * 3 / 9 + 0.4 / 27), rel=1e-6)
    assert row["lmir_dir_anchor"] == 0
    default = Letor46().compute(context_of(three_documents), Pairs(np.array([1]), np.array([1])))
    by_default = dict(zip(family.column_names, default[0], strict=True))
    assert by_default["bm25_whole"] == pytest.approx(log(1.5) * 10.5 / 5.5, rel=1e-6)


@pytest.mark.parametrize("query", [2, 3])
def test_queries_without_known_words_have_only_lengths(three_documents, query):
    pairs = Pairs(np.full(3, query), np.arange(3))
    family = Letor46()
    values = family.compute(context_of(three_documents), pairs)
    for name, column in zip(family.column_names[:40], values[:, :40].T, strict=True):
        expected = BY_HAND[name] if name.startswith("dl_") else [0, 0, 0]
        assert column.tolist() == expected, name


def test_missing_fields_are_zero_and_said_to_be():
    collection = toy({"body": ["red fox", "owl"]}, ["fox"])
    context = context_of(collection)
    family = Letor46()
    values = family.compute(context, all_pairs(collection))
    absent = family.absent(context)
    assert absent["bm25_title"] == "0: the collection has no field 'title'"
    assert absent["pagerank"] == "0: the collection has no links"
    assert absent["url_length"] == "0: the collection has no field 'url'"
    for name, column in zip(family.column_names, values.T, strict=True):
        if name in absent:
            assert not column.any(), name
    np.testing.assert_array_equal(
        family.select(values, ["bm25_body"]), family.select(values, ["bm25_whole"])
    )
    assert absent["tf_anchor"].startswith("0: ")
    assert "tf_body" not in absent


def test_keywords_and_description_count_in_the_whole():
    collection = toy({"body": ["red fox", "owl"], "keywords": ["fox fox", ""]}, ["fox"])
    values = Letor46().compute(context_of(collection), all_pairs(collection))
    assert Letor46().select(values, ["tf_body", "tf_whole"]).tolist() == [[1, 3], [0, 0]]


def slow_term_columns(texts, query, family):
    """The formulas of the module on raw tokens of one field: float64 [n, 8]."""
    documents = [Counter(text.split()) for text in texts]
    lengths = [sum(d.values()) for d in documents]
    df = Counter(t for d in documents for t in d)
    total = Counter(t for d in documents for t in d.elements())
    n, mean, n_tokens = len(texts), sum(lengths) / len(texts), sum(lengths)
    rows = []
    for d, length in zip(documents, lengths, strict=True):
        u = len(d) / length if length else 1.0
        row = [0.0, 0.0, 0.0, length, 0.0, 0.0, 0.0, 0.0]
        for t, qtf in Counter(query.split()).items():
            if not total[t]:
                continue
            c, idf, p = d[t], log(n / df[t]), total[t] / n_tokens
            share = c / length if length else 0.0
            discounted = max(c - family.delta, 0) / length if length else 0.0
            norm = family.k1 * (1 - family.b + family.b * length / mean)
            row[0] += c
            row[1] += idf
            row[2] += c * idf
            if c:
                k3 = (family.k3 + 1) * qtf / (family.k3 + qtf)
                row[4] += idf * c * (family.k1 + 1) / (c + norm) * k3
            row[5] += qtf * log(discounted + family.delta * u * p)
            row[6] += qtf * log((c + family.mu * p) / (length + family.mu))
            row[7] += qtf * log((1 - family.lam) * share + family.lam * p)
        rows.append(row)
    return np.array(rows)


def assert_equal_to_slow_twin(fields, queries, family, pairs):
    collection = toy(fields, queries)
    values = family.compute(context_of(collection), pairs)
    analyzer = TermIndex.build(collection).analyzer
    tokens = {s: [" ".join(analyzer.tokens(t)) for t in texts] for s, texts in fields.items()}
    tokens["whole"] = [" ".join(parts) for parts in zip(*tokens.values(), strict=True)]
    names = ("tf", "idf", "tfidf", "dl", "bm25", "lmir_abs", "lmir_dir", "lmir_jm")
    for field, texts in tokens.items():
        mine = family.select(values, [f"{name}_{field}" for name in names])
        for query in np.unique(pairs.query):
            rows = pairs.query == query
            text = " ".join(analyzer.tokens(queries[query]))
            expected = slow_term_columns(texts, text, family)[pairs.document[rows]]
            np.testing.assert_allclose(mine[rows], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "family", [Letor46(), Letor46(k1=0.9, b=0.4, k3=5, delta=0.3, mu=50, lam=0.6)]
)
def test_term_columns_equal_the_slow_formulas(family):
    rng = np.random.default_rng(7)
    words = np.array([f"w{i:02d}" for i in range(40)])

    def texts(n, longest):
        return [" ".join(rng.choice(words, rng.integers(0, longest))) for _ in range(n)]

    fields = {"title": texts(60, 4), "body": texts(60, 60), "anchor": texts(60, 3)}
    queries = [*texts(8, 9), "w00 w00 unseen w39"]
    m, n = len(queries), 60
    pairs = Pairs(rng.integers(0, m, 400), rng.integers(0, n, 400))
    assert_equal_to_slow_twin(fields, queries, family, pairs)


@pytest.mark.data
def test_term_columns_equal_the_slow_formulas_on_cranfield(data_folder):
    folder = data_folder / "cranfield"
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    with open(folder / "queries.jsonl", encoding="utf-8") as lines:
        queries = [query["text"] for query in map(json.loads, lines)]
    fields = {
        "title": [document["title"] for document in documents],
        "body": [document["text"] for document in documents],
    }
    rng = np.random.default_rng(0)
    pairs = Pairs(np.repeat(np.arange(0, 225, 75), 200), rng.integers(0, len(documents), 600))
    assert_equal_to_slow_twin(fields, queries, Letor46(), pairs)


def test_long_queries_stay_finite():
    text = " ".join(f"w{i}" for i in range(3000))
    collection = toy({"body": [text, "w0", ""]}, [text])
    values = Letor46().compute(context_of(collection), all_pairs(collection))
    assert np.isfinite(values).all()
    index = TermIndex.build(collection)
    assert index.query_counts([text]).nnz == 3000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k1": -1}, "k1 must be 0 or more, got -1"),
        ({"b": 1.5}, "b must lie"),
        ({"delta": 0}, "delta must lie"),
        ({"mu": 0}, "mu must lie"),
        ({"lam": 0}, "lam must lie"),
        ({"damping": 1}, "damping must lie"),
        ({"k1": math.nan}, "k1 must be 0 or more, got nan"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        Letor46(**parameters)
