import unicodedata
from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import ltr_features.text.term_counts as term_counts
from letor.errors import InputError
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.term_counts import count_fields, count_terms, renumbered

# Characters at which the rule turns: expanding folds, final sigma, marks, format characters,
# compositions, Hangul letters, astral letters, a lone surrogate, the ends of UTF-8's widths.
TRICKY = (
    "İßςΣΐﬃ\u0345\u0301\u0323eEsS'’_-\u00ad\u200b\u200d\ufeff\u1112\u1161\u11ab각𝒳𐐀Ⴀ"
    "ＡｶﾞﻻⅣ²\ufdfa\ud800\x00\x7f\x80߿ࠀ\uffff\U00010000\U0010ffff1½ \n"
)
TEXTS = st.lists(
    st.text(st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=()))), max_size=6
)


def slow_tokens(text, fold):
    """The rule of ltr_features.text.analyzer, step by step."""
    runs, run = [], ""
    for character in unicodedata.normalize("NFC", text) + "\n":
        category = unicodedata.category(character)
        if category[0] in "LNM":
            run += character.casefold() if fold else character
        elif category != "Cf" or character == "\u200b":
            runs.append(run)
            run = ""
    for i, run in enumerate(runs):
        composed = unicodedata.normalize("NFKC", run)
        if fold:
            folded = composed.casefold().replace("i\u0307", "i")
            composed = unicodedata.normalize("NFKC", folded)
        if all(unicodedata.category(c)[0] in "LNM" for c in composed):
            runs[i] = composed
    return [run for run in runs if any(unicodedata.category(c)[0] != "M" for c in run)]


def as_counters(words, counts):
    return [
        {words[j]: int(c) for j, c in zip(row.indices, row.data, strict=True)} for row in counts
    ]


@given(TEXTS, st.booleans())
@example(["E\u0301 e\u0323\u0301", "", "Σς ΣΣ", "ab\u00adcd"], True)
@settings(deadline=None, max_examples=300)
def test_counts_and_twin_agree_on_any_text(texts, fold):
    analyzer = Analyzer(lowercase=fold, min_length=1, max_length=10**6)
    expected = [Counter(slow_tokens(text, fold)) for text in texts]
    words, counts = count_terms(texts, analyzer)
    assert as_counters(words, counts) == expected
    assert [Counter(analyzer.tokens(text)) for text in texts] == expected
    assert words == sorted(set().union(*expected))


def test_pairs_of_ideographs_are_counted_like_words():
    texts = ["東京都庁へ行く", "USBメモリ 東京"]
    words, counts = count_terms(texts, Analyzer(cjk_bigrams=True))
    assert as_counters(words, counts) == [
        Counter(["東京", "京都", "都庁", "庁へ", "へ行", "行く"]),
        Counter(["usb", "メモ", "モリ", "東京"]),
    ]


@given(TEXTS, st.integers(1, 3), st.integers(1, 3))
@settings(deadline=None, max_examples=50)
def test_blocks_do_not_change_the_counts(texts, of_texts, of_rows):
    whole = count_terms(texts)
    blocks = [{"text": texts[i : i + of_texts]} for i in range(0, len(texts), of_texts)]
    with patch.object(term_counts, "_ROWS", of_rows):
        words, (counts,) = count_fields(blocks, ("text",))
    assert words == whole[0]
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(whole[1], name))


def test_counts_are_int32_with_sorted_columns():
    words, counts = count_terms(["b a b", "", "c a"], Analyzer(min_length=1))
    assert words == ["a", "b", "c"]
    assert counts.dtype == np.int32
    assert counts.toarray().tolist() == [[1, 2, 0], [0, 0, 0], [1, 0, 1]]
    assert counts.has_sorted_indices


def test_stems_that_fall_together_are_added_up():
    words, counts = count_terms(
        ["runs running run the"], Analyzer(stopwords=("the",), stemmer="english")
    )
    assert words == ["run"]
    assert counts.toarray().tolist() == [[3]]


@pytest.mark.parametrize("stemmer", [None, "english"])
def test_dropping_and_stemming_over_many_rows(stemmer):
    rng = np.random.default_rng(2)
    forms = [a + b for a in ("run", "connect", "relat", "x") for b in ("", "s", "ed", "ing", "ion")]
    analyzer = Analyzer(stopwords=("runs", "relating"), stemmer=stemmer)
    texts = [" ".join(rng.choice(forms, rng.integers(0, 30))) for _ in range(50)]
    with patch.object(term_counts, "_ROWS", 7):
        words, counts = count_terms(texts, analyzer)
    assert as_counters(words, counts) == [Counter(analyzer.tokens(text)) for text in texts]
    columns_increase = [np.all(np.diff(row.indices) > 0) for row in counts]
    assert all(columns_increase)


def test_no_texts_and_no_words():
    words, counts = count_terms([])
    assert (words, counts.shape) == ([], (0, 0))
    words, counts = count_terms(["", "?!"])
    assert (words, counts.shape) == ([], (2, 0))


def test_fields_share_one_vocabulary():
    blocks = [
        {"title": ["Red fox"], "body": ["a red red fox"]},
        {"title": ["Owl"], "body": ["blue owl"]},
    ]
    words, (title, body) = count_fields(blocks, ("title", "body"))
    assert words == ["blue", "fox", "owl", "red"]
    assert title.toarray().tolist() == [[0, 1, 0, 1], [0, 0, 1, 0]]
    assert body.toarray().tolist() == [[0, 1, 0, 2], [1, 0, 1, 0]]


def test_bad_texts_are_named():
    with pytest.raises(InputError, match="text 3000 is NoneType, not a string"):
        count_terms(["a"] * 3000 + [None])
    with pytest.raises(InputError, match="expected a sequence of texts, got the text 'one text'"):
        count_terms("one text")


def test_columns_are_renumbered_left_out_and_put_together():
    matrix = csr_matrix(np.array([[1, 2, 0, 4], [0, 0, 0, 0], [5, 0, 7, 8]], dtype=np.int32))
    made = renumbered(matrix, np.array([3, -1, 0, 3]), 5)
    assert made.indices.tolist() == [3, 3, 3, 0, 3]
    made.sum_duplicates()
    assert made.toarray().tolist() == [[0, 0, 0, 5, 0], [0] * 5, [7, 0, 0, 13, 0]]
    assert made.dtype == np.int32
    assert renumbered(csr_matrix((2, 0)), np.zeros(0, int), 3).shape == (2, 3)
