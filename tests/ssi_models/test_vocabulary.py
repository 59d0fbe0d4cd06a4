import pytest

from ssi_models.vocabulary import Vocabulary


def test_rows_of_known_and_unknown_words():
    vocabulary = Vocabulary(["b", "a", "ß"])
    assert len(vocabulary) == 3
    assert vocabulary.rows(["a", "x", "ß", "a"]).tolist() == [1, -1, 2, 1]
    assert vocabulary.rows([]).tolist() == []
    assert list(vocabulary) == ["b", "a", "ß"]
    assert "a" in vocabulary
    assert "x" not in vocabulary


def test_fingerprint_depends_on_words_order_and_borders():
    fingerprints = {
        Vocabulary(words).fingerprint for words in (["ab", "c"], ["c", "ab"], ["a", "bc"], ["abc"])
    }
    assert len(fingerprints) == 4
    assert Vocabulary(["ab", "c"]).fingerprint == Vocabulary(("ab", "c")).fingerprint
    assert Vocabulary(["ab", "c"]) == Vocabulary(("ab", "c"))


def test_a_word_given_twice_is_refused_by_name():
    with pytest.raises(ValueError, match="'b' occurs twice"):
        Vocabulary(["a", "b", "c", "b"])


def test_anything_but_strings_is_refused():
    with pytest.raises(ValueError, match="holds strings; got 3"):
        Vocabulary(["a", 3])
