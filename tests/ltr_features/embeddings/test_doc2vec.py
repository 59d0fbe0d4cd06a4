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


def table_of_gensim(x):
    """gensim's logistic function, a table of 1000 numbers from -6 to 6; its index is computed as
    (x + 6) * (1000 / 6 / 2) with the divisions of whole numbers: 83. Nothing beyond 6."""
    index = np.floor((np.clip(x, -6, 6) + 6) * 83)
    return 1 / (1 + np.exp(6 - index * 12 / 1000))


def expected_flow(gensim_model, text, duration, steps):
    """dv/dt = the expected step of gensim's pass over the text, by Euler's method."""
    wv = gensim_model.wv
    rows, labels, weights = [], [], []  # of the predictions that are made, f_w times each
    noise = np.zeros(len(wv))
    for word, count in Counter(word for word in text if word in wv).items():
        row = wv.key_to_index[word]
        kept = count * min(wv.get_vecattr(row, "sample_int") / 2**32, 1)
        if gensim_model.hs:
            code = wv.get_vecattr(row, "code")
            rows.extend(wv.get_vecattr(row, "point"))
            labels.extend(kept * (1.0 - code))
            weights.extend([kept] * len(code))
        else:
            rows.append(row)
            labels.append(kept)
            weights.append(kept)
            chances = np.diff(gensim_model.cum_table / gensim_model.cum_table[-1], prepend=0.0)
            chances[row] = 0  # a negative sample that is the word itself is skipped
            noise += kept * gensim_model.negative * chances
    U = (gensim_model.syn1 if gensim_model.hs else gensim_model.syn1neg).astype(float)
    labels, weights = (np.bincount(rows, each, len(U)) for each in (labels, weights))
    weights = weights + noise[: len(U)]
    v = np.zeros(U.shape[1])
    for _ in range(steps):
        x = U @ v
        v += duration / steps * ((labels - weights * table_of_gensim(x)) * (abs(x) < 6)) @ U
    return v


@pytest.mark.parametrize(("length", "steps"), [(5, 150), (20, 150), (60, 300), (2500, 3000)])
def test_inference_follows_the_expected_flow(gensim_model, model, texts, length, steps):
    words = [word for text in texts[150:] for word in text]
    asked = [words[:length], words[-length:]]
    mine = model.infer(bags_of(model, asked))
    for text, vector in zip(asked, mine, strict=True):
        v = expected_flow(gensim_model, text, model.duration, steps)
        assert cosines(vector[None], v[None])[0] > 0.998
        assert np.linalg.norm(vector) == pytest.approx(np.linalg.norm(v), rel=0.1)


def test_inference_of_repetitive_texts_follows_the_flow_too(gensim_model, model):
    words, rng = model.words, np.random.default_rng(4)
    known = gensim_model.wv.index_to_key
    rare = [[known[row]] * 50 for row in rng.integers(len(words) // 2, len(words), 12)]
    common = [[known[row]] * 50 + known[100:130] for row in rng.integers(0, 50, 12)]
    many = [[known[row] for row in rng.integers(len(words) // 2, len(words), 800)]]
    asked = rare + common + many
    mine = model.infer(bags_of(model, asked))
    flows = [expected_flow(gensim_model, text, model.duration, 1000) for text in asked]
    assert cosines(mine, np.array(flows)).min() > 0.98


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
    # Ours has no noise of its own, so it lies nearer to a run than another run does.
    assert to_mine > between_runs
    assert to_mine > 0.98


def test_long_texts_agree_with_gensims_vectors_over_any_order(gensim_model, model, texts):
    # gensim's vectors lean to the last words of a long text; PV-DBOW itself knows no order.
    words = [word for text in texts[150:200] for word in text if word in model.words]
    rng = np.random.default_rng(0)
    runs = np.array([gensim_model.infer_vector(list(rng.permutation(words))) for _ in range(8)])
    mine = np.repeat(model.infer(bags_of(model, [words])), len(runs), axis=0)
    assert cosines(runs, mine).mean() > cosines(runs, np.roll(runs, 1, axis=0)).mean()
    assert cosines(runs.mean(axis=0, keepdims=True), mine[:1])[0] > 0.998


def test_a_text_has_one_vector_in_any_company(model, texts):
    bags = bags_of(model, texts[:90])
    together = model.infer(bags, threads=1)
    np.testing.assert_array_equal(model.infer(bags, threads=2), together)
    np.testing.assert_array_equal(model.infer(bags[::-1])[::-1], together)
    np.testing.assert_array_equal(model.infer(bags[7]), together[7:8])


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
    with pytest.raises(InputError, match=r"ends in \.safetensors|under a name in"):
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
