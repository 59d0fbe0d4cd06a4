"""Texts that are versions of one text."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from toys import context_of, toy

from letor.folds import Fold
from ltr_features.columns.out_of_fold import separated
from ltr_features.text.query_texts import nearly_equal


def versions() -> sp.csr_matrix:
    """Counts of the words of 60 texts: 20 long ones, and of each a version with some words and one
    with many words exchanged; and one of 19 words, twice."""
    rng = np.random.default_rng(0)
    X = np.zeros((62, 3000), int)
    for text in range(20):
        words = rng.choice(3000, rng.integers(40, 400), replace=False)
        for version, share in enumerate((0, 0.05, 0.3)):
            other = rng.random(len(words)) < share
            own = np.where(other, rng.choice(3000, len(words)), words)
            X[text + 20 * version, own] = rng.integers(1, 4, len(own))
    X[60:, :19] = 1
    return sp.csr_matrix(X)


def test_all_pairs_with_most_words_in_common_are_found() -> None:
    X = versions()
    found = nearly_equal(X)
    sets = [set(X[row].indices.tolist()) for row in range(60)]  # those of 19 words are short
    wanted = [
        [a, b]
        for a in range(60)
        for b in range(a + 1, 60)
        if len(sets[a] & sets[b]) >= 0.8 * len(sets[a] | sets[b])
    ]
    assert sorted(found.tolist()) == wanted
    assert 20 <= len(wanted) < 60
    assert nearly_equal(X[:0]).shape == (0, 2)


def test_versions_on_both_sides_of_a_fold_are_told() -> None:
    claims = [f"word{n}" for n in range(40)]
    family = [" ".join(claims), " ".join([*claims[:38], "other", "words"])]
    queries = [*family, "short text", "another text"]
    context = context_of(toy({"body": [" ".join(claims), "short text"]}, queries))
    apart = Fold("Fold1", train=("q0", "q2"), validation=("q3",), test=("q1",))
    (told,) = separated(context, [apart])
    assert told.startswith("at least 1 test query has nearly the same words as a training query")
    assert "('q1' as 'q0', say)" in told
    together = Fold("Fold1", train=("q2",), validation=("q3",), test=("q0", "q1"))
    assert separated(context, [together]) == []
