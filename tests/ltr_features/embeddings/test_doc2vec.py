from collections import Counter

import numpy as np
import pytest
from gensim.models import Doc2Vec as GensimDoc2Vec
from gensim.models.doc2vec import TaggedDocument
from gensim.test.utils import datapath
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.embeddings.doc2vec import Doc2Vec


@pytest.fixture(scope="module")
def texts():
    with open(datapath("lee_background.cor"), encoding="latin1") as lines:
        return [line.lower().split() for line in lines]


@pytest.fixture(scope="module", params=["negative sampling", "hierarchical softmax"])
def gensim_model(request, texts):
    hs = request.param == "hierarchical softmax"
    return GensimDoc2Vec(
        [TaggedDocument(text, [row]) for row, text in enumerate(texts[:150])],
        dm=0, vector_size=24, min_count=2, epochs=15, seed=1, workers=1,
        hs=int(hs), negative=0 if hs else 5,
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(gensim_model):
    return Doc2Vec.from_gensim(gensim_model, source="a test")


def bags_of(model, texts):
    bags = np.zeros((len(texts), len(model.words)), dtype=np.int32)
    for row, text in enumerate(texts):
        for word, count in Counter(text).items():
            if word in model.words:
                bags[row, model.words.rows([word])[0]] = count
    return csr_matrix(bags)


def cosines(a, b):
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


@pytest.mark.parametrize("length", [10, 30, 50, 150])
def test_vectors_agree_with_gensims_within_its_own_noise(gensim_model, model, texts, length):
    asked = [text[:length] for text in texts[150:190]]
    # gensim starts from a hash of the text that differs from process to process: the reversed text,
    # the same to PV-DBOW, stands for a run in another process.
    first = np.array([gensim_model.infer_vector(text) for text in asked])
    second = np.array([gensim_model.infer_vector(text[::-1]) for text in asked])
    mine = model.infer(bags_of(model, asked))
    between_runs = cosines(first, second).mean()
    to_mine = (cosines(first, mine).mean() + cosines(second, mine).mean()) / 2
    assert to_mine == pytest.approx(between_runs, abs=0.005)
    assert to_mine > 0.98


def test_long_texts_agree_with_gensims_vectors_over_any_order(gensim_model, model, texts):
    # gensim's vectors lean to the last words of a long text; PV-DBOW itself knows no order.
    words = [word for text in texts[150:200] for word in text if word in model.words]
    rng = np.random.default_rng(0)
    runs = np.array([gensim_model.infer_vector(list(rng.permutation(words))) for _ in range(8)])
    mine = np.repeat(model.infer(bags_of(model, [words])), len(runs), axis=0)
    between_runs = [cosines(runs, np.roll(runs, shift, axis=0)) for shift in range(1, 8)]
    assert cosines(runs, mine).mean() > np.min(between_runs)
    assert cosines(runs, mine).min() > 0.97


def test_a_text_has_one_vector_in_any_company(model, texts):
    bags = bags_of(model, texts[:90])
    together = model.infer(bags, threads=1)
    np.testing.assert_array_equal(model.infer(bags, threads=2), together)
    np.testing.assert_array_equal(model.infer(bags[::-1])[::-1], together)
    np.testing.assert_array_equal(model.infer(bags[7]), together[7:8])
    one = bags[7]
    words = np.repeat(one.indices, one.data)[::-1]  # in another order, and each as often as it is
    loose = csr_matrix((np.ones(len(words), np.int32), words, [0, len(words)]), one.shape)
    np.testing.assert_array_equal(model.infer(loose), together[7:8])


def test_texts_without_known_words_have_no_vector(model):
    vectors = model.infer(csr_matrix((2, len(model.words))))
    assert not vectors.any()
    assert model.infer(csr_matrix((0, len(model.words)))).shape == (0, 24)


def test_very_long_and_repetitive_texts_stay_finite(model, texts):
    everything = [word for text in texts for word in text][:20000]
    vectors = model.infer(bags_of(model, [everything, ["the"] * 20000, everything[:1] * 5000]))
    assert np.isfinite(vectors).all()
    assert np.abs(vectors).max() < 100


def test_a_saved_model_infers_the_same(model, texts, tmp_path):
    model.save(tmp_path / "m.safetensors")
    stored = Doc2Vec.load(tmp_path / "m.safetensors")
    bags = bags_of(model, texts[:20])
    np.testing.assert_array_equal(stored.infer(bags), model.infer(bags))
    assert stored.source == "a test"
    with pytest.raises(InputError, match=r"ends? in \.safetensors"):
        model.save(tmp_path / "m.model")


def test_gensim_files_are_pickles_and_need_trust(gensim_model, model, texts, tmp_path):
    path = tmp_path / "gensim.model"
    gensim_model.save(str(path))
    with pytest.raises(InputError, match="trust_pickle=True"):
        Doc2Vec.from_gensim_file(path)
    with pytest.raises(InputError, match="convert a gensim file once"):
        Doc2Vec.load(path)
    converted = Doc2Vec.from_gensim_file(path, trust_pickle=True)
    bags = bags_of(model, texts[:5])
    np.testing.assert_array_equal(converted.infer(bags), model.infer(bags))
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="gensim cannot load it"):
        Doc2Vec.from_gensim_file(path, trust_pickle=True)
    with pytest.raises(InputError, match="no such file"):
        Doc2Vec.from_gensim_file(tmp_path / "none", trust_pickle=True)


def test_other_models_and_bags_are_refused(model, texts):
    documents = [TaggedDocument(texts[0], [0])]
    memory = GensimDoc2Vec(documents, dm=1, vector_size=4, min_count=1, epochs=1, workers=1)
    with pytest.raises(InputError, match="dm=0"):
        Doc2Vec.from_gensim(memory, source="")
    both = GensimDoc2Vec(documents, dm=0, hs=1, negative=5, vector_size=4, min_count=1, epochs=1)
    with pytest.raises(InputError, match="both or neither"):
        Doc2Vec.from_gensim(both, source="")
    with pytest.raises(InputError, match="bags over 3 words"):
        model.infer(csr_matrix((1, 3)))
