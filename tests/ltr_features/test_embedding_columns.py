import re
from dataclasses import replace
from pathlib import Path

import gensim
import numpy as np
import pytest
import small_files
import toys
from gensim.models.doc2vec import TaggedDocument
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features import FeatureBuilder
from ltr_features.columns import doc_embeddings
from ltr_features.columns.base import check_families
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.doc_embeddings import (
    DocumentEmbeddingChunk,
    DocumentEmbeddingWord,
    chunk_bags,
)
from ltr_features.columns.registry import get_family
from ltr_features.columns.word_embeddings import WordEmbeddingWord
from ltr_features.embeddings import training
from ltr_features.embeddings.doc2vec import Doc2Vec
from ltr_features.embeddings.training import (
    TrainingSettings,
    train_doc2vec,
    train_word_vectors,
    training_key,
)
from ltr_features.embeddings.vectors import WordVectors, unit_rows
from ltr_features.feature_files import columns_from_json
from ltr_features.feature_table import build_columns
from ltr_features.remarks import ColumnWarning
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Pairs

WORDS = [f"word{i}" for i in range(40)]


def context_of(fields, queries, **options):
    return toys.context_of(toys.toy(fields, queries), **options)


def all_pairs(context):
    return toys.all_pairs(context.collection)


@pytest.fixture(scope="module")
def random_context():
    rng = np.random.default_rng(0)
    fields = {
        "body": [" ".join(rng.choice(WORDS, rng.integers(0, 130))) for _ in range(30)],
        "title": [" ".join(rng.choice(WORDS, rng.integers(0, 5))) for _ in range(30)],
    }
    return context_of(fields, ["word1 word2", "word3 unseen", "", "word4 word4 word5"])


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "tiny.vec"
    path.write_text("fox 2 0\nred 0 3\nowl 3 4\nMoon -1 0\nblank 0 0\nword1 0 1\n")
    return str(path)


# fox = (1, 0), red = (0, 1), owl = (.6, .8), moon = (-1, 0); "blank", "odd" have no direction.
# Queries: "red fox fox", "moon" (in no document), "odd blank", "".
# Average: the mean unit vector of "red fox fox" is (2/3, 1/3).
BODY = ["fox owl", "owl owl red odd", "odd blank", ""]
AVERAGES = [
    [(2 / 3 * 1.6 + 1 / 3 * 0.8) / 2, (2 / 3 * 1.2 + 1 / 3 * 2.6) / 3, 0, 0],
    [-1.6 / 2, -1.2 / 3, 0, 0],
    [0] * 4,
    [0] * 4,
]
MAXIMA = [[1, 1, 0, 0], [-0.6, 0, 0, 0], [0] * 4, [0] * 4]


def test_word_cosines_by_hand(vectors):
    context = context_of(
        {"body": BODY, "keywords": ["", "moon", "owl", "red"]},
        ["red fox fox", "Moon!", "odd blank", ""],
    )
    family = WordEmbeddingWord(vectors=vectors)
    values = family.compute(context, all_pairs(context))
    average, greatest = family.select(values, ["w2v_word_avg_body", "w2v_word_max_body"]).T
    np.testing.assert_allclose(average.reshape(4, 4), AVERAGES, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(greatest.reshape(4, 4), MAXIMA, rtol=1e-6, atol=1e-7)
    keywords = family.select(values, ["w2v_word_max_keywords"]).reshape(4, 4)
    np.testing.assert_allclose(keywords[0], [0, 0, 0.8, 1], rtol=1e-6, atol=1e-7)
    assert set(family.absent(context)) == {
        f"w2v_word_{short}_{field}" for short in ("avg", "max") for field in ("title",
        "description")
    }  # fmt: skip


def test_mapped_vectors_give_the_columns_of_their_file_and_are_opened_once(
    vectors, tmp_path, monkeypatch
):
    saved = tmp_path / "tiny.safetensors"
    WordVectors.load(vectors).save(saved)
    context = context_of({"body": BODY}, ["red fox fox", "Moon!", "odd blank", ""])
    read, mapped = WordEmbeddingWord(vectors=vectors), WordEmbeddingWord(vectors=str(saved))
    pairs = all_pairs(context)
    np.testing.assert_array_equal(mapped.compute(context, pairs), read.compute(context, pairs))
    later = context.for_queries(["moon"])
    expected = read.compute(later, Pairs(np.zeros(4, int), np.arange(4)))
    monkeypatch.setattr(WordVectors, "load", None)
    values = mapped.compute(later, Pairs(np.zeros(4, int), np.arange(4)))
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(values[:2, 1], [-0.6, 0], atol=1e-7)


def test_the_papers_numbers_of_columns():
    counts = {name: len(get_family(name).columns) for name in ("w2v-word", "d2v-word", "d2v-chunk")}
    assert counts == {"w2v-word": 8, "d2v-word": 4, "d2v-chunk": 6}


def test_families_of_one_kind_of_vectors_share_them():
    for names in (("w2v-word", "w2v-entity"), ("d2v-word", "d2v-chunk", "d2v-entity")):
        assert len({get_family(name).model_key for name in names}) == 1
    assert get_family("d2v-word").epochs == 20


@pytest.mark.parametrize("kind", [WordEmbeddingWord, DocumentEmbeddingWord])
def test_families_of_other_settings_have_vectors_of_their_own(kind, random_context):
    context = ColumnContext(random_context.collection, random_context.index)
    pairs = all_pairs(context)
    one, two = (kind(dimension=4, epochs=1, seed=n).compute(context, pairs) for n in (1, 2))
    assert not np.array_equal(one, two)


def test_chunks_do_not_overlap_and_the_last_may_be_short():
    tokens = np.arange(7, dtype=np.int32)
    ends, bags = chunk_bags(np.array([0, 5, 5, 7]), tokens, 2, 7)
    assert ends.tolist() == [0, 3, 3, 4]
    assert [row.indices.tolist() for row in bags] == [[0, 1], [2, 3], [4], [5, 6]]
    ends, bags = chunk_bags(np.array([0, 3]), np.array([4, 4, 4], np.int32), 2, 5)
    assert bags.toarray().tolist() == [[0, 0, 0, 0, 2], [0, 0, 0, 0, 1]]


def test_document_cosines_equal_those_of_single_texts(random_context):
    context, pairs = random_context, all_pairs(random_context)
    source = DocumentEmbeddingWord(dimension=8, epochs=5)
    model = source.load(context)
    analyzer = context.index.analyzer

    def vector(tokens):
        rows = model.words.rows(tokens)
        bag = np.bincount(rows[rows >= 0], minlength=len(model.words))
        return unit_rows(model.infer(csr_matrix(bag)))[0].astype(float)

    queries = [vector(analyzer.tokens(text)) for text in context.collection.query_texts]
    bodies = [analyzer.tokens(text) for text in context.collection.fields["body"]]
    values = source.compute(context, pairs)
    whole = np.array([[q @ vector(body) for body in bodies] for q in queries])
    np.testing.assert_allclose(values[:, 0], whole.ravel(), rtol=1e-5, atol=1e-6)
    chunked = DocumentEmbeddingChunk(dimension=8, epochs=5).compute(context, pairs)
    for position, length in enumerate(doc_embeddings.CHUNK_LENGTHS):
        chunks = [
            [vector(b[i : i + length]) for i in range(0, len(b), length)] or [np.zeros(8)]
            for b in bodies
        ]
        cosines = [[np.array([q @ c for c in of]) for of in chunks] for q in queries]
        averages = [[of.mean() for of in row] for row in cosines]
        maxima = [[of.max() for of in row] for row in cosines]
        got = chunked[:, 2 * position : 2 * position + 2].T.reshape(2, 4, 30)
        np.testing.assert_allclose(got[0], averages, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[1], maxima, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [WordEmbeddingWord, DocumentEmbeddingWord, DocumentEmbeddingChunk])
def test_kept_and_unkept_vectors_give_equal_columns(kind, random_context, tmp_path, monkeypatch):
    pairs = all_pairs(random_context)

    def values(**options):
        context = ColumnContext(random_context.collection, random_context.index)
        return kind(dimension=8, epochs=3, **options).compute(context, pairs)

    plain = values()
    assert plain.any()
    np.testing.assert_array_equal(values(folder=tmp_path), plain)
    assert len(list(tmp_path.iterdir())) == 1
    with monkeypatch.context() as patch:
        patch.setattr(training, "train_word_vectors", None)
        patch.setattr(training, "train_doc2vec", None)
        np.testing.assert_array_equal(values(folder=str(tmp_path)), plain)
    values(folder=tmp_path, seed=2)
    assert len(list(tmp_path.iterdir())) == 2


def test_kept_vectors_are_those_of_the_same_texts_and_recipe():
    settings = TrainingSettings()

    def key(bodies, ids=("d0", "d1"), **recipe):
        texts = replace(toys.toy({"body": bodies}), document_ids=list(ids))
        return training_key("word2vec", texts, Analyzer(**recipe), settings)

    first = key(["red fox", "owl"])
    assert key(["owl", "red fox"], ids=("d1", "d0")) == first
    others = [
        key(["owl", "red fox"]),
        key(["red ", "foxowl"]),
        key(["red fox", "owl"], stemmer="english"),
    ]
    assert len({first, *others}) == 4


def test_saved_builders_keep_trained_vectors(random_context, tmp_path, monkeypatch):
    """Another machine, or version of a library, may train others."""
    knowledge = small_files.make("knowledge base", tmp_path / "made") / "kb"
    options = {"dimension": 4, "epochs": 1, "knowledge": str(knowledge)}
    builder = FeatureBuilder({"ensan2017": options}).fit(random_context)
    query, docnos = np.array([0, 2, 3]), ["d0", "d7", "d9"]
    texts = list(random_context.collection.query_texts)
    builder.save(tmp_path / "b")
    expected = builder.compute(texts, query, docnos)
    assert np.ptp(expected) > 0

    for kind in (gensim.models.Word2Vec, gensim.models.Doc2Vec):
        monkeypatch.setattr(kind, "train", lambda *_, **__: None)  # vectors stay random
    again = FeatureBuilder.load(tmp_path / "b")
    np.testing.assert_array_equal(again.compute(texts, query, docnos), expected)
    (path,) = (tmp_path / "b" / "learned").glob("doc2vec-*")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=rf"{path.name} is damaged: it is not the file that"):
        FeatureBuilder.load(tmp_path / "b")


def test_saved_builders_find_files_from_other_folders(
    random_context, vectors, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    builder = FeatureBuilder({"w2v-word": {"vectors": "tiny.vec"}}).fit(random_context)
    builder.save("b")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    FeatureBuilder.load("../b").compute(["fox red"], np.zeros(1, int), ["d0"])
    Path(vectors).unlink()
    with pytest.raises(InputError, match=f"no file {re.escape(vectors)}"):
        FeatureBuilder.load("../b")


def test_training_reads_all_text_fields_but_no_url():
    context = context_of(
        {"body": ["red fox"] * 2, "description": ["blue owl"] * 2, "url": ["http://ex.org"] * 2},
        ["fox"],
    )
    settings = TrainingSettings(dimension=4, epochs=1)
    vectors = train_word_vectors(context.collection, Analyzer(), settings)
    assert sorted(vectors.words) == ["blue", "fox", "owl", "red"]
    again = train_word_vectors(context.collection, Analyzer(), settings)
    assert again.words == vectors.words
    np.testing.assert_array_equal(again.units, vectors.units)
    assert "no labels" in vectors.source


@pytest.mark.parametrize(
    ("train", "learned"), [(train_word_vectors, "units"), (train_doc2vec, "output")]
)
def test_training_reads_long_texts_to_their_end(train, learned):
    settings = TrainingSettings(dimension=4, epochs=1, sample=0)
    beginning, end = WORDS * 250, WORDS[:30] * 2
    models = [
        train(toys.toy({"body": [" ".join(beginning + last)]}, []), Analyzer(), settings)
        for last in (end, end[::-1])
    ]
    assert models[0].words == models[1].words
    assert not np.array_equal(*(getattr(model, learned) for model in models))


def test_provenance_says_what_was_learned_from(random_context, vectors):
    pairs = all_pairs(random_context)
    families = [WordEmbeddingWord(vectors=vectors), DocumentEmbeddingWord(dimension=4, epochs=1)]
    data = build_columns(random_context, pairs, families)
    assert data.provenance["w2v_word_avg_body"]["trained on"] == "vector file tiny.vec, no labels"
    said = data.provenance["d2v_word_body"]["trained on"]
    assert said == "text of all documents, no labels"
    assert data.provenance["d2v_word_keywords"]["absent"].startswith("0: ")


def test_settings_of_training_are_refused_with_a_file_that_is_trained_already(
    vectors, random_context
):
    for given in ({"dimension": 50}, {"epochs": 1, "seed": 2}):
        message = f"^{', '.join(given)}: vectors names .*tiny.vec, which is trained already"
        with pytest.raises(InputError, match=message):
            WordEmbeddingWord(vectors=vectors, **given)
    assert WordEmbeddingWord(vectors=vectors, dimension=100).vectors == vectors  # as by default
    # An earlier version took them.
    saved = {"name": "w2v-word", "params": {"vectors": vectors, "dimension": 50}}
    families, _ = columns_from_json({"families": [saved], "models": []}, Path("features.json"))
    assert families == [WordEmbeddingWord(vectors=vectors)]
    # A ranker that was trained on its columns is not told of others.
    assert "dimension" not in families[0].settings(random_context)
    assert WordEmbeddingWord(dimension=50).settings(random_context)["dimension"] == 50


def test_queries_without_a_known_word_are_told(tmp_path):
    path = tmp_path / "german.txt"
    path.write_text("1 2\nhaus 1 0\n", encoding="utf-8")
    context = context_of({"body": ["das Haus", "дом"]}, ["Haus", "дом", "maison"])
    family, pairs = WordEmbeddingWord(vectors=str(path)), all_pairs(context)
    notes = build_columns(context, pairs, [family]).provenance["w2v_word_avg_body"]
    assert notes["remarks"] == [
        "vector file german.txt lacks 67 % of the words in documents, counted with repetitions "
        "('das', 'дом'), and they are left out; take one that was made of texts like these",
        "5 of 6 rows (83.3 %) have no known word in the query, or none in the document, and get 0; "
        "is the vector file german.txt of the texts' language?",
    ]
    with pytest.warns(ColumnWarning, match="w2v-word: vector file german.txt lacks 67 %"):
        FeatureBuilder([family]).fit(context)


def test_files_without_a_word_of_the_documents_are_refused_before_anything_is_made(
    random_context, tmp_path
):
    (tmp_path / "v.txt").write_text("haus 1 0\n")
    texts = [TaggedDocument(["haus"] * 9, [0])]
    model = gensim.models.Doc2Vec(texts, dm=0, vector_size=4, min_count=1)
    Doc2Vec.from_gensim(model, source="").save(tmp_path / "d.safetensors")
    for parameter, name, family in (
        ("vectors", "v.txt", WordEmbeddingWord(vectors=str(tmp_path / "v.txt"))),
        ("model", "d.safetensors", DocumentEmbeddingWord(model=str(tmp_path / "d.safetensors"))),
    ):
        with pytest.raises(InputError, match=rf"{parameter}: .*{name} has no word of the"):
            check_families([family], random_context)


def test_trained_vectors_tell_of_rows_without_a_word_frequent_enough():
    context = context_of({"body": ["red fox red fox", "owl"]}, ["fox", "owl", ""])
    families = [
        WordEmbeddingWord(dimension=4, epochs=1),
        DocumentEmbeddingWord(dimension=4, epochs=1),
        DocumentEmbeddingChunk(dimension=4, epochs=1),
    ]
    data = build_columns(context, all_pairs(context), families)
    for family in families:
        notes = data.provenance[family.column_names[0]]
        assert notes["rows without a value"] == 4  # not of "", which has no word
        assert ["lower min_count" in remark for remark in notes["remarks"]] == [True]


def test_stemmed_tokens_find_the_words_of_the_file(tmp_path):
    path = tmp_path / "v.vec"
    path.write_text("Running 1 0\nfoxes 0 1\n")
    context = context_of({"body": ["the fox runs"]}, ["run"], analyzer=Analyzer(stemmer="english"))
    values = WordEmbeddingWord(vectors=str(path)).compute(context, all_pairs(context))
    np.testing.assert_allclose(values[0, :2], [0.5, 1.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WordEmbeddingWord(vectors="none.vec"), "vectors: no file none.vec"),
        (lambda: DocumentEmbeddingWord(model="none"), "model: no file none"),
        (lambda: TrainingSettings(dimension=0), "dimension must be a number in 1..10000"),
        (lambda: TrainingSettings(epochs="many"), "epochs must be"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_too_rare_words_are_refused():
    context = context_of({"body": ["red fox"]}, ["fox"])
    for family in (WordEmbeddingWord(), DocumentEmbeddingWord()):
        with pytest.raises(InputError, match="no word occurs 2 times"):
            family.compute(context, all_pairs(context))
