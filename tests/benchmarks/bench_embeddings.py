"""Speed of the embedding columns beside gensim, in the same run.

    python tests/benchmarks/bench_embeddings.py [threads]

Doc2vec inference: texts of 10, 30, 50, 200 and 2,500 words, by ``infer_vector`` and by ours; cosine
of ours to gensim's vectors beside that of two of gensim's runs, over the same order of the words
and, since PV-DBOW takes a text for a bag, over two orders drawn at random. Reading of vector files:
words per second of gensim's reader and ours, all words and one in ten.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from gensim.models import Doc2Vec as GensimDoc2Vec
from gensim.models import KeyedVectors
from gensim.models.doc2vec import TaggedDocument
from gensim.test.utils import datapath
from scipy.sparse import csr_matrix
from timing import repeated, timed

from ltr_features.embeddings.doc2vec import Doc2Vec
from ltr_features.embeddings.vectors import WordVectors

ROUNDS = 3


def seconds(work, *arguments, **options):
    """Median over ROUNDS."""
    return median(repeated(ROUNDS, work, *arguments, **options))


def bags_of(model, texts):
    known = [[word for word in text if word in model.words] for text in texts]
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in known])
    columns = model.words.rows([word for text in known for word in text])
    counts = np.ones(len(rows), np.int64)  # of a word that comes again they are added
    return csr_matrix((counts, (rows, columns)), shape=(len(texts), len(model.words)))


def cosine(a, b):
    return float(((a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))).mean())


def inference(threads, dimension, negative):
    with open(datapath("lee_background.cor"), encoding="latin1") as lines:
        texts = [line.lower().split() for line in lines]
    gensim_model = GensimDoc2Vec(
        [TaggedDocument(text, [row]) for row, text in enumerate(texts)],
        dm=0, vector_size=dimension, min_count=2, epochs=20, seed=1, workers=1,
        negative=negative, hs=int(negative == 0),
    )  # fmt: skip
    model = Doc2Vec.from_gensim(gensim_model, source="benchmark")
    words = [word for text in texts for word in text]

    def inferred(texts):
        return np.array([gensim_model.infer_vector(text) for text in texts])

    model.infer(bags_of(model, texts[:2]))
    kind = f"negative={negative}" if negative else "hierarchical softmax"
    print(f"\ninference, dimension {dimension}, {kind}, 20 epochs, {threads} threads")
    print("                                                order kept         words shuffled")
    print("words   gensim us/text   ours us/text   ratio  gensim  with ours   gensim  with ours")
    rng = np.random.default_rng(0)
    for length in (10, 30, 50, 200, 2500):
        n = 100 if length < 2500 else 4
        asked = [words[37 * i : 37 * i + length] for i in range(n)]
        rounds = [timed(inferred, asked) for _ in range(ROUNDS)]
        slow, runs = median(taken for taken, _ in rounds), [vectors for _, vectors in rounds]
        # Many texts at once is how the columns ask.
        copies = 40 if length < 2500 else 16
        bags = bags_of(model, asked * copies)
        fast = seconds(model.infer, bags, threads) / copies
        mine = model.infer(bags[:n])
        shuffled = [inferred([list(rng.permutation(text)) for text in asked]) for _ in range(2)]
        print(
            f"{length:5d} {slow / n * 1e6:16.0f} {fast / n * 1e6:14.1f} {slow / fast:7.1f} "
            f"{cosine(*runs[:2]):7.4f} {cosine(runs[0], mine):10.4f} "
            f"{cosine(*shuffled):8.4f} {cosine(shuffled[0], mine):10.4f}"
        )


def reading(n_words=20_000, dimension=100):
    rng = np.random.default_rng(0)
    vectors = KeyedVectors(dimension)
    names = [f"word{i}" for i in range(n_words)]
    vectors.add_vectors(names, rng.normal(size=(n_words, dimension)).astype(np.float32))
    some = names[::10]
    print(f"\nreading {n_words} words of dimension {dimension}: words/s")
    print("layout   gensim      ours        ratio   ours, one word in ten")
    with tempfile.TemporaryDirectory() as folder:
        for binary in (False, True):
            path = str(Path(folder) / "vectors")
            vectors.save_word2vec_format(path, binary=binary)
            slow = seconds(KeyedVectors.load_word2vec_format, path, binary=binary)
            fast = seconds(WordVectors.load, path)
            restricted = seconds(WordVectors.load, path, some)
            print(
                f"{'binary' if binary else 'text':8s} {n_words / slow:10.0f}  "
                f"{n_words / fast:10.0f}  {slow / fast:6.1f}  {n_words / restricted:12.0f}"
            )


if __name__ == "__main__":
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    inference(threads, 100, 5)
    inference(threads, 300, 5)
    inference(threads, 100, 0)
    reading()
