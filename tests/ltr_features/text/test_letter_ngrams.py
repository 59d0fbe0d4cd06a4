"""Words in parts: trigrams, their counts and tf-idf rows, and the columns made of them."""

from __future__ import annotations

import json
from collections import Counter
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import all_pairs, context_of, toy

from letor.digests import write_digests
from letor.errors import InputError
from ltr_features import FeatureBuilder, LearnedColumn, get_family
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fitted import load_fitted, notes_path, save_fitted
from ltr_features.columns.term_space import LetterSpace, TermSpace, VectorSpace, query_row
from ltr_features.columns.trained import TrainedColumn
from ltr_features.feature_table import build_columns
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Judgements, Pairs
from ltr_features.text.index import TermIndex
from ltr_features.text.letter_ngrams import LetterTrigrams, rows_of_word, side_by_side
from ssi_models.vocabulary import Vocabulary

WORDS = st.text(st.characters(categories=["Ll", "Nd", "Mn"]), min_size=1, max_size=9)


def trigrams(word):
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(word))]


def test_a_word_is_cut_as_in_the_paper():
    found = LetterTrigrams.of(["cat", "a", "ße"])
    assert list(found.vocabulary) == ["#a#", "#ca", "#ße", "at#", "cat", "ße#"]
    counts = found.of_words(["cat", "", "rat", "a", "xyz"]).toarray()
    assert counts.dtype == np.int32
    assert counts.tolist() == [
        [0, 1, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    banana = LetterTrigrams.of(["banana"])
    assert dict(zip(banana.vocabulary, banana.of_words(["banana"]).toarray()[0], strict=True)) == {
        "#ba": 1, "ana": 2, "ban": 1, "na#": 1, "nan": 1
    }  # fmt: skip
    none = LetterTrigrams.of([])
    assert none.of_words(["cat"]).shape == (1, 0)
    assert banana.of_words([]).shape == (0, 5)


@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=8))
def test_counts_are_those_of_each_word(words, asked):
    found = LetterTrigrams.of(words)
    assert list(found.vocabulary) == sorted({t for word in words for t in trigrams(word)})
    counts = found.of_words(asked)
    for word, row in zip(asked, counts.toarray(), strict=True):
        known = {t: n for t, n in Counter(trigrams(word)).items() if t in found.vocabulary}
        expected = {t: n for t, n in zip(found.vocabulary, row.tolist(), strict=True) if n}
        assert known == expected
    assert found.of_words(words).sum() == sum(map(len, words))
    assert counts.has_sorted_indices


def test_terms_of_a_saved_vocabulary_are_found_by_words():
    words = Vocabulary(["category", "cat"])
    parts = LetterTrigrams.of(["cat", "rat"]).vocabulary
    both = side_by_side(words, parts)
    assert list(both) == ["category", "cat", "3:#ca", "3:#ra", "3:at#", "3:cat", "3:rat"]

    def found(vocabulary, word):
        return [[vocabulary[row] for row in rows] for rows in rows_of_word(vocabulary, word)]

    assert found(words, "cat") == [["cat"], []]
    assert found(words, "categories") == [[], []]
    assert found(parts, "cat") == [[], ["#ca", "cat", "at#"]]  # the word, not the trigram alone
    assert found(parts, "cats") == [[], ["#ca", "cat"]]
    assert found(parts, "catcat") == [[], ["#ca", "cat", "cat", "at#"]]
    assert found(parts, "#ca") == [[], ["#ca"]]
    assert found(both, "cat") == [["cat"], ["3:#ca", "3:cat", "3:at#"]]
    assert found(both, "3:cat") == [[], ["3:cat"]]
    assert found(both, "cut") == [[], []]


DOCUMENTS = ["glacier glacier lake", "stone bridge", "stone lake", "", "bridges über glaciers"]
QUERIES = ["glacier", "glaceir", "stone bridge", "", "glaceir stone", "ÜBER bridge"]


def collection_of(documents=DOCUMENTS, queries=QUERIES):
    fields = {"title": [text.split(" ")[0] for text in documents], "body": documents}
    return toy(fields, list(queries), name="parts")


@pytest.fixture
def context():
    return context_of(collection_of(), threads=1)


def cosines(context, terms, **options):
    values = get_family("vsm", terms=terms, **options).compute(
        context, all_pairs(context.collection)
    )
    return values.reshape(context.collection.n_queries, -1)


def expected_cosines(cut, unknown):
    """By the definition, text by text. ``unknown``: words of the queries alone weigh log n."""
    texts = [Counter(t for word in f"{d.split(' ')[0]} {d}".split() for t in cut(word))
             for d in DOCUMENTS]  # fmt: skip
    asked = [Counter(t for word in q.lower().split() for t in cut(word)) for q in QUERIES]
    n, df = len(texts), Counter(term for text in texts for term in text)

    def row(counts):
        weighed = {t: c * log(n / df[t]) if t in df else c * log(n) * unknown
                   for t, c in counts.items()}  # fmt: skip
        length = sqrt(sum(w * w for w in weighed.values())) or 1.0
        return {t: w / length for t, w in weighed.items()}

    rows = [row(text) for text in texts]
    known = [{t: w for t, w in row(q).items() if t in df} for q in asked]
    lengths = [sqrt(sum(w * w for w in q.values())) for q in known]
    dots = [[sum(w * d.get(t, 0) for t, w in q.items()) for d in rows] for q in known]
    return np.array(dots), np.array(lengths)


def test_cosines_are_those_of_the_definition(context):
    words, _ = expected_cosines(lambda w: [w], unknown=0)
    parts, _ = expected_cosines(trigrams, unknown=0)
    np.testing.assert_allclose(cosines(context, "words"), words, atol=1e-6)
    np.testing.assert_allclose(cosines(context, "letter-trigrams"), parts, atol=1e-6)
    # Both: halves of a unit row; unknown words have their share of a query's words.
    shared, of_words = expected_cosines(lambda w: [w], unknown=1)
    lengths = np.sqrt(of_words**2 + np.array([bool(text) for text in QUERIES])) * sqrt(2)
    expected = (shared + parts) / np.where(lengths, lengths, 1)[:, None]
    np.testing.assert_allclose(cosines(context, "both"), expected, atol=1e-6)
    np.testing.assert_allclose(expected[2], (words[2] + parts[2]) / 2)  # all words known


def test_a_misspelled_word_is_found_by_its_parts(context):
    typo = QUERIES.index("glaceir")
    assert not cosines(context, "words")[typo].any()
    for terms in ("letter-trigrams", "both"):
        found = cosines(context, terms)[typo]
        assert found[0] > 0.2
        assert not found[[1, 2, 3]].any()
        empty = cosines(context, terms)
        assert not empty[QUERIES.index("")].any()
        assert not empty[:, DOCUMENTS.index("")].any()
        assert np.isfinite(empty).all()


def test_rows_are_unit_rows(context):
    for terms in ("words", "letter-trigrams", "both"):
        space = TermSpace.of(context, terms=terms)
        for X, texts in ((space.D, DOCUMENTS), (space.Q, QUERIES)):
            assert X.dtype == np.float32
            assert X.has_sorted_indices
            assert X.shape[1] == len(space.vocabulary) == len(space.weighting.idf_)
            lengths = np.sqrt(X.multiply(X).sum(axis=1)).A1
            known = [bool(X[i].nnz) for i in range(len(texts))]
            np.testing.assert_allclose(lengths, known, atol=1e-6)


@pytest.mark.parametrize("terms", ["words", "letter-trigrams", "both"])
def test_rows_of_queries_are_made_from_what_a_model_keeps(terms):
    queries = ["bridge", "bridge stone bridge", "ananas glacier", "glaceir stone über", "lak"]
    space = TermSpace.of(context_of(collection_of([*DOCUMENTS, "ananas"], queries)), terms=terms)
    for query, text in enumerate(queries):
        words = text.split(" ")
        row = query_row(space.vocabulary, space.weighting, words)
        np.testing.assert_allclose(row.toarray(), space.Q[query].toarray(), atol=1e-6)


def test_counts_of_both_stand_side_by_side(context):
    both = TermSpace.counts(context, "title", "both")
    n_words = len(context.index.vocabulary)
    for i, text in enumerate(DOCUMENTS):
        words = text.split(" ")[:1] if text else []
        expected = Counter([*words, *(f"3:{t}" for word in words for t in trigrams(word))])
        row = both.D[i].toarray()[0]
        assert {both.vocabulary[j]: row[j] for j in np.flatnonzero(row)} == expected
    typo = both.Q[QUERIES.index("glaceir")]
    assert (typo.indices >= n_words).all()
    assert {both.vocabulary[j] for j in typo.indices} == {"3:#gl", "3:gla", "3:lac"}
    assert both.D.dtype == both.Q.dtype == np.int32
    assert TermSpace.counts(context, "title", "both").D is both.D


def test_rare_terms_are_left_out(context):
    vocabulary = TermSpace.of(context, 2, terms="both").vocabulary
    assert "glaciers" not in vocabulary
    assert "stone" in vocabulary
    assert "3:#gl" in vocabulary
    assert "3:rs#" not in vocabulary
    with pytest.raises(InputError, match="no letter trigram occurs in 9 documents"):
        TermSpace.of(context, 9, terms="letter-trigrams")


def test_trigrams_are_of_stems():
    collection = collection_of(["bridges"], ["bridging"])
    index = TermIndex.build(collection, Analyzer(stemmer="english"))
    counts = TermSpace.counts(ColumnContext(collection, index), terms="letter-trigrams")
    assert list(counts.vocabulary) == ["#br", "bri", "dg#", "idg", "rid"]
    assert counts.Q.toarray().tolist() == [[1, 1, 1, 1, 1]]


@pytest.mark.parametrize("terms", ["letter-trigrams", "both"])
def test_queries_that_come_later_get_the_batch_s_numbers(context, terms):
    batch, pairs = cosines(context, terms), Pairs(np.zeros(5, np.int64), np.arange(5))
    documents = TermSpace.of(context, terms=terms).D
    for query, text in enumerate(QUERIES):
        alone = context.for_queries([text])
        values = VectorSpace(terms=terms).compute(alone, pairs)[:, 0]
        np.testing.assert_array_equal(values, batch[query])
        assert TermSpace.of(alone, terms=terms).D is documents


def test_letters_stand_beside_words_as_a_family_of_their_own(context):
    pairs = all_pairs(context.collection)
    table = build_columns(context, pairs, [VectorSpace(), LetterSpace()])
    assert table.column_names == ["vsm", "letters"]
    for column, terms in enumerate(("words", "letter-trigrams")):
        expected = cosines(context, terms).ravel()
        np.testing.assert_array_equal(table.X[:, column], expected)


def test_other_terms_are_refused_with_the_choices():
    message = "terms must be 'words' or 'letter-trigrams' or 'both', got 'trigrams'"
    with pytest.raises(InputError, match=f"column family 'vsm': {message}"):
        get_family("vsm", terms="trigrams")
    with pytest.raises(InputError, match=message):
        VectorSpace(terms="trigrams")
    with pytest.raises(InputError, match=f"column 'x': {message}"):
        LearnedColumn("x", "ssi", terms="trigrams")


def test_columns_say_their_terms():
    plain, parts, both = (
        LearnedColumn("x", "ssi", terms=terms) for terms in ("words", "letter-trigrams", "both")
    )
    assert "terms" not in plain.provenance["description"]
    assert parts.provenance["description"].endswith("; terms: letter trigrams")
    assert both.provenance["description"].endswith("; terms: words and letter trigrams")
    assert "CIKM 2013" in parts.provenance["reference"]
    assert LetterSpace().columns[0].description.endswith("; terms: letter trigrams")
    (spec,) = VectorSpace(terms="both").columns
    assert spec.description.endswith("; terms: words and letter trigrams")


N = 24


def asked():
    """Documents and queries of four subjects; each query has a word with two letters swapped."""
    subjects = ["glacier", "railway", "orchestra", "philosophy"]
    documents = [f"{subjects[i % 4]} common{i % 5}" for i in range(N)]
    queries = [
        f"{s[:3]}{s[4]}{s[3]}{s[5:]} common{i % 3}" for i in range(N) for s in [subjects[i % 4]]
    ]
    q, d = np.nonzero(np.arange(N)[:, None] % 4 == np.arange(N) % 4)
    judged = Judgements(q, d, np.ones(len(q), np.int64))
    return toy({"body": documents}, queries, judged, name="asked")


QUICK = {"max_epochs": 2, "batch_size": 16, "n_negatives": 8}
MODELS = {
    "ssi": {"rank": 4, **QUICK},
    "s2net": {"rank": 8, "max_epochs": 2},
    "lsi": {"rank": 4},
    "bltm": {"n_topics": 4},
    "wtm": {},
}


@pytest.mark.parametrize("terms", ["letter-trigrams", "both"])
@pytest.mark.parametrize("model", MODELS)
def test_models_of_parts_are_saved_and_loaded(model, terms, tmp_path):
    collection = asked()
    context = context_of(collection, threads=1)
    recipe = LearnedColumn(model, model, MODELS[model], terms=terms)
    fitted = TrainedColumn(context, recipe, tmp_path / "models").fitted(np.arange(16))
    scores = fitted.compute(context, all_pairs(context.collection))
    right = scores.reshape(N, N).argsort(axis=1)[16:, -3:] % 4 == np.arange(16, N)[:, None] % 4
    assert right.mean() > 0.9
    save_fitted(fitted, tmp_path / "m.safetensors", collection.query_ids[:16])
    again = load_fitted(tmp_path / "m.safetensors", queries=collection.query_ids[16:])
    assert again.recipe == recipe
    np.testing.assert_array_equal(again.compute(context, all_pairs(context.collection)), scores)
    # A recipe with other terms does not take the model's rows for its own.
    notes = json.loads(notes_path(tmp_path / "m.safetensors").read_text())
    del notes["recipe"]["terms"]
    notes_path(tmp_path / "m.safetensors").write_text(json.dumps(notes))
    old = load_fitted(tmp_path / "m.safetensors", queries=[])
    assert old.recipe.terms == "words"
    with pytest.raises(InputError, match="others: it was trained on"):
        old.compute(context, all_pairs(context.collection))


def test_only_other_terms_have_files_of_their_own(context, tmp_path):
    rows = np.arange(2)
    paths = {
        terms: TrainedColumn(context, LearnedColumn("x", "ssi", terms=terms), tmp_path).path(rows)
        for terms in ("words", "letter-trigrams", "both")
    }
    assert len(set(paths.values())) == 3
    assert TrainedColumn(context, LearnedColumn("x", "ssi"), tmp_path).path(rows) == paths["words"]


def test_a_builder_is_saved_with_its_terms(tmp_path):
    recipe = LearnedColumn("ssi", "ssi", {"rank": 4, **QUICK}, terms="both")
    made = FeatureBuilder({"vsm": {"terms": "letter-trigrams"}}, [recipe], threads=1).fit(asked())
    rows = (["glacire", "phylosophy common1"], np.repeat([0, 1], 3), ["d0", "d1", "d3"] * 2)
    values = made.compute(*rows)
    assert (values[[0, 5], 0] > 0.2).all()
    made.save(tmp_path / "features")
    again = FeatureBuilder.load(tmp_path / "features", threads=1)
    assert again.models == (recipe,)
    np.testing.assert_array_equal(again.compute(*rows), values)
    path = tmp_path / "features" / "features.json"
    described = json.loads(path.read_text())
    del described["models"][0]["terms"]
    path.write_text(json.dumps(described))
    write_digests(path.parent)
    with pytest.raises(InputError, match=r"knows .* words, the collection has .* others"):
        FeatureBuilder.load(tmp_path / "features")  # now of words alone, which the model is not


def test_a_model_that_cannot_be_written_leaves_the_notes_of_the_former_one(tmp_path):
    context = context_of(asked(), threads=1)
    recipe = LearnedColumn("lsi", "lsi", MODELS["lsi"])
    fitted = TrainedColumn(context, recipe, tmp_path / "models").fitted(np.arange(16))
    (tmp_path / "m.safetensors").mkdir()
    notes_path(tmp_path / "m.safetensors").write_text("former")
    with pytest.raises(OSError, match=r"m\.safetensors'$"):
        save_fitted(fitted, tmp_path / "m.safetensors", [])
    assert notes_path(tmp_path / "m.safetensors").read_text() == "former"
