"""From how many links on a higher degree, or correlated hashing, is better: on made collections.

- ``degree``: relevance depends on pairs of document words whose single words say nothing; ``psi``
  of degree 3 against degree 2 of the same rank, and of the same number of parameters.
- ``hash``: most words are rare variants of frequent ones; ``correlated-hash`` against ``ssi`` on
  the frequent words and on all.
- ``repeats``: by how many links a rare word has, ``correlated-hash`` against ``ssi`` on all words.

MAP of 500 held-out queries over 2,000 documents, mean over seeds; beside it the paired difference
to the first row with its 95 % interval over all queries of all seeds, and the lowest and highest
difference of a seed. What was found is told in ``docs/model-evidence.md``.

    PYTHONPATH=tests/reference python tests/benchmarks/bench_higher_degree.py degree|hash|repeats
        [--sizes 1e3 1e4 1e5] [--seeds 2]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from higher_degree import Collection, pairs_of_words, rare_words
from timing import seconds_of

from ssi_models.ssi.correlated_hash import CorrelatedHashSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.polynomial import PSI
from ssi_models.training.trainable import TrainableModel

N_CONCEPTS = 300
REPEATS = (4, 16, 64, 240)
STEPS = 3e6  # links seen in training at most, in 3 to 60 epochs
SETTINGS = {
    "rank": 50, "margin": 0.3, "learning_rate": 0.03, "init": "lsi", "scales": (1.0,),
    "batch_size": 256, "n_negatives": 256, "patience": 20, "validation_documents": 2000,
    "symmetric": False, "threads": 1,
}  # fmt: skip

Make = Callable[..., TrainableModel]
DEGREES: dict[str, Make] = {
    "degree 3, rank 50": PSI,
    "degree 2, rank 50": LowRankSSI,
    "degree 2, rank 75": lambda **options: LowRankSSI(**{**options, "rank": 75}),
}
HASHES: dict[str, Make] = {
    "hashed, bins=1": lambda **o: CorrelatedHashSSI(n_features=N_CONCEPTS, bins=1, **o),
    "hashed, bins=5": lambda **o: CorrelatedHashSSI(n_features=N_CONCEPTS, bins=5, **o),
    "ssi, frequent words": lambda **o: LowRankSSI(n_frequent=N_CONCEPTS, **o),
    "ssi, all words": LowRankSSI,
}


def compare(
    title: str, makers: Mapping[str, Make], make: Callable[[int], Collection], seeds: int
) -> None:
    """Print a table of the models on the collections of some seeds."""
    found: dict[str, list[Any]] = {name: [] for name in makers}
    seconds = dict.fromkeys(makers, 0.0)
    for seed in range(seeds):
        data = make(seed)
        epochs = int(np.clip(STEPS / len(data.links), 3, 60))
        for name, maker in makers.items():
            model = maker(**SETTINGS, max_epochs=epochs, seed=seed)
            seconds[name] += seconds_of(model.fit, data.Q, data.D, data.links) / seeds
            found[name].append(data.precision(model))
    print(f"{title}, {data.D.shape[1]:,} words", flush=True)
    first = np.array(found[next(iter(makers))])
    for name, values in found.items():
        d = np.array(values) - first
        half, by_seed = 1.96 * d.std() / np.sqrt(d.size), d.mean(axis=1)
        line = f"  {name:20} MAP {np.mean(values):.3f}  {seconds[name]:6.1f} s"
        if d.any():
            line += f"  {d.mean():+.3f} ± {half:.3f} ({by_seed.min():+.3f} to {by_seed.max():+.3f})"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("degree", "hash", "repeats"))
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e3, 1e4, 1e5])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    for size in options.sizes:
        n, seeds = int(size), options.seeds
        title = f"{n:,} links"
        if options.what == "degree":
            compare(title, DEGREES, lambda seed, n=n: pairs_of_words(n, seed), seeds)
        elif options.what == "hash":
            compare(title, HASHES, lambda seed, n=n: rare_words(n, seed), seeds)
        else:
            both = {name: HASHES[name] for name in ("hashed, bins=1", "ssi, all words")}
            for k in REPEATS:
                compare(
                    f"{title}, {k} of each rare word", both,
                    lambda seed, n=n, k=k: rare_words(n, seed, links_per_word=k), seeds,
                )  # fmt: skip


if __name__ == "__main__":
    main()
