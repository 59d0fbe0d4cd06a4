"""The kernel of doc2vec inference beside gensim's, given the same start and the same draws."""

from collections import Counter

import numpy as np
import pytest
from gensim.models import Doc2Vec as GensimDoc2Vec
from gensim.models import doc2vec as gensim_doc2vec
from gensim.models.doc2vec import TaggedDocument
from gensim.test.utils import datapath

from ltr_features.embeddings.doc2vec import Doc2Vec
from ltr_features.kernels.doc2vec import (
    NOISE_WHOLE,
    guide_of,
    infer,
    pass_seed,
    shuffled,
    text_seed,
)

GOLDEN = np.uint64(20260101)


class Draws:
    """Stands for a gensim model's random numbers: each pass begins where ours does."""

    def __init__(self, seed):
        self.seed, self.number, self.low = seed, 0, None

    def randint(self, low, high):
        assert (low, high) == (0, 2**24)
        if self.low is None:  # gensim asks for the upper half of its state, then for the lower
            self.number += 1
            upper, self.low = divmod(int(pass_seed(self.seed, self.number)), 2**24)
            return upper
        lower, self.low = self.low, None
        return lower


def start(seed, size):
    """A text's first vector: draws of pass 0, by hand."""
    state, vector = int(pass_seed(seed, 0)), []
    for _ in range(size):
        vector.append(((state >> 16) / 2**32 - 0.5) / size)
        state = (state * 25214903917 + 11) % 2**48
    return np.array(vector, dtype=np.float32)


@pytest.mark.parametrize("sample", [0, 1e-3])
@pytest.mark.parametrize("negative", [0, 1, 5])
def test_it_takes_gensims_steps(negative, sample, monkeypatch):
    with open(datapath("lee_background.cor"), encoding="latin1") as lines:
        texts = [line.lower().split() for line in lines]
    theirs = GensimDoc2Vec(
        [TaggedDocument(text, [row]) for row, text in enumerate(texts[:100])],
        dm=0, vector_size=23, min_count=2, epochs=12, seed=1, workers=1, sample=sample,
        hs=int(negative == 0), negative=negative,
    )  # fmt: skip
    model = Doc2Vec.from_gensim(theirs, source="a test")
    monkeypatch.setattr(
        gensim_doc2vec, "pseudorandom_weak_vector", lambda size, **_: start(GOLDEN, size)
    )
    for text in (texts[120][:1], texts[110][:30], texts[130]):
        theirs.random = Draws(GOLDEN)
        expected = theirs.infer_vector(text)
        known = [theirs.wv.key_to_index[word] for word in text if word in theirs.wv]
        mine = np.empty(23, dtype=np.float32)
        infer(np.array(known, dtype=np.int32), GOLDEN, model._frozen, mine)
        # A dot product's last bit, other on each processor, can choose the next cell of gensim's
        # table of the logistic function: a step less is .01 and more.
        np.testing.assert_allclose(mine, expected, atol=1e-4)


def test_the_guide_leads_to_what_bisection_finds():
    rng = np.random.default_rng(0)
    noise = np.sort(rng.integers(0, NOISE_WHOLE, 3000))
    noise[-1] = NOISE_WHOLE
    guide = guide_of(noise)
    drawn = np.concatenate([rng.integers(0, NOISE_WHOLE, 5000), noise - 1, noise[:-1], [0]])
    drawn = drawn[drawn >= 0]
    expected = np.searchsorted(noise, drawn)
    found = guide[drawn >> 15].astype(np.int64)
    while (behind := noise[found] < drawn).any():
        found[behind] += 1
    np.testing.assert_array_equal(found, expected)


def test_words_come_in_an_order_that_their_seed_draws():
    words, counts = np.arange(5, dtype=np.int32), np.array([1, 3, 2, 1, 9], dtype=np.int32)
    seed = text_seed(words, counts)
    text = shuffled(words, counts, seed)
    assert Counter(text.tolist()) == dict(zip(words.tolist(), counts.tolist(), strict=True))
    np.testing.assert_array_equal(shuffled(words, counts, seed), text)
    assert (np.diff(text) < 0).any()
    assert text_seed(words, counts[::-1].copy()) != seed
    # Every order of three words is drawn about as often.
    three, once = np.arange(3, dtype=np.int32), np.ones(3, dtype=np.int32)
    orders = Counter(tuple(shuffled(three, once, np.uint64(s)).tolist()) for s in range(6000))
    assert len(orders) == 6
    assert 850 < min(orders.values()) <= max(orders.values()) < 1150
