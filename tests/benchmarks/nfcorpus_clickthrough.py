"""Table 1 and Figure 2 of Gao, Toutanova, Yih (SIGIR 2011) on NFCorpus: topic and translation
models trained on (query, title of a relevant document) pairs of the training queries.

Test queries rank all documents by their titles; lambda1 and lambda2 are tuned by 2-fold
cross-validation on NDCG@10 (gain 2^grade - 1; unjudged documents have grade 0). Ties go to the
first document.

Run: LTR_DATA=... python tests/benchmarks/nfcorpus_clickthrough.py [topics]
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.stats import ttest_rel

from ltr_features.text import Analyzer
from ssi_models.preferences import Preferences
from ssi_models.topics.bltm import BLTM
from ssi_models.topics.language_model import LanguageModel, UnigramLM
from ssi_models.topics.mixture import cross_validate
from ssi_models.topics.plsa import PLSA
from ssi_models.topics.posterior_regularization import BLTMPR, BLTMPR1V
from ssi_models.translation.ibm1 import IBMModel1

LAMBDA1 = (0.02, 0.1, 0.2, 0.4, 0.6, 0.8)
LAMBDA2 = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
CUTOFFS = (1, 3, 10)


class NFCorpus:
    """Counts of titles and queries over one vocabulary, and graded pairs of both splits."""

    def __init__(self, folder: Path) -> None:
        with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            documents = [json.loads(line) for line in lines]
        with open(folder / "queries.jsonl", encoding="utf-8") as lines:
            queries = {q["_id"]: q["text"] for q in map(json.loads, lines)}
        row = {d["_id"]: i for i, d in enumerate(documents)}
        analyzer = Analyzer()
        titles = [terms(analyzer, d["title"]) for d in documents]
        self.splits: dict[str, tuple[sp.csr_matrix, np.ndarray, np.ndarray, np.ndarray]] = {}
        judged, asked = {}, {}
        for split in ("train", "test"):
            with open(folder / "qrels" / f"{split}.tsv", encoding="utf-8") as lines:
                found = [line.split() for line in lines][1:]
            names = sorted({q for q, _, _ in found})
            at = {name: i for i, name in enumerate(names)}
            asked[split] = [terms(analyzer, queries[name]) for name in names]
            judged[split] = np.array([(at[q], row[d], int(g)) for q, d, g in found]).T
        words = sorted({w for text in titles + asked["train"] for w in text})
        column = {word: j for j, word in enumerate(words)}
        self.words, self.D = words, counts(titles, column)
        for split in ("train", "test"):
            self.splits[split] = (counts(asked[split], column), *judged[split])


def terms(analyzer: Analyzer, text: str) -> list[str]:
    return [term for term in analyzer.terms(analyzer.tokens(text)) if term is not None]


def counts(texts: list[list[str]], column: dict[str, int]) -> sp.csr_matrix:
    cells = [(i, column[w]) for i, text in enumerate(texts) for w in text if w in column]
    rows, columns = np.array(cells).T
    ones = np.ones(len(cells), np.float32)
    return sp.csr_matrix((ones, (rows, columns)), shape=(len(texts), len(column)))


class NDCG:
    """NDCG per query of dense scores [queries x documents]."""

    def __init__(self, shape: tuple[int, int], query, document, grade) -> None:  # type: ignore[no-untyped-def]
        self.gain = np.zeros(shape)
        self.gain[query, document] = 2.0**grade - 1
        self.ideal = -np.sort(-self.gain, axis=1)[:, : max(CUTOFFS)]

    def __call__(self, scores: np.ndarray, cutoffs: tuple[int, ...] = (10,)) -> np.ndarray:
        """float64 [n_queries] for one cutoff, else [cutoffs, n_queries]."""
        key = scores.reshape(self.gain.shape) - 1e-10 * np.arange(self.gain.shape[1])
        best = np.argpartition(-key, max(CUTOFFS), axis=1)[:, : max(CUTOFFS)]
        order = np.argsort(-np.take_along_axis(key, best, axis=1), axis=1)
        gained = np.take_along_axis(self.gain, np.take_along_axis(best, order, axis=1), axis=1)
        discount = 1 / np.log2(np.arange(2, max(CUTOFFS) + 2))
        values = np.array(
            [
                (gained[:, :k] @ discount[:k]) / np.maximum(self.ideal[:, :k] @ discount[:k], 1e-12)
                for k in cutoffs
            ]
        )
        return values[0] if len(cutoffs) == 1 else values


def main() -> None:
    if "LTR_DATA" not in os.environ:
        sys.exit("set LTR_DATA to the folder of the research data sets (with nfcorpus/ in it)")
    n_topics = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    data = NFCorpus(Path(os.environ["LTR_DATA"]) / "nfcorpus")
    Q, query, document, _ = data.splits["train"]
    T, t_query, t_document, t_grade = data.splits["test"]
    n, m = data.D.shape[0], T.shape[0]
    pairs = Preferences.from_pairs(query, document, n_queries=Q.shape[0], n_documents=n)
    ndcg = NDCG((m, n), t_query, t_document, t_grade)
    every = np.repeat(np.arange(m), n), np.tile(np.arange(n), m)
    folds = np.random.default_rng(0).permutation(m) % 2
    print(f"{len(pairs)} training pairs, {n} titles, {len(data.words)} words, {m} test queries, ")
    print(f"{n_topics} topics. Weights: (lambda1, lambda2) chosen for either half.\n")
    topics: dict[str, LanguageModel] = {
        "PLSA": PLSA(n_topics=n_topics),
        "BLTM": BLTM(n_topics=n_topics),
        "BLTM-PR": BLTMPR(n_topics=n_topics, iterations=16),
        "BLTM-PR-1V": BLTMPR1V(n_topics=n_topics, iterations=16),
        "WTM_M1": IBMModel1(),
    }
    rows: dict[str, np.ndarray] = {}
    print(f"{'model':22} NDCG@1 NDCG@3 NDCG@10  seconds to fit   weights")
    for name, model in {"UM": UnigramLM(), **topics}.items():
        start = time.perf_counter()
        model.fit(Q, data.D, pairs)  # type: ignore[attr-defined]
        seconds = time.perf_counter() - start
        parts = model.probabilities(T, data.D, *every)
        variants = {"": LAMBDA2, " (lambda2=0)": (0.0,)} if name != "UM" else {"": (1.0,)}
        for suffix, lambda2 in variants.items():
            chosen = cross_validate(parts, ndcg, every[0], folds, lambda1=LAMBDA1, lambda2=lambda2)
            rows[name + suffix] = ndcg(chosen.scores, CUTOFFS)
            means = "  ".join(f"{v:.3f}" for v in rows[name + suffix].mean(axis=1))
            weights = " ".join(str(pair) for pair in chosen.weights.values())
            print(f"{name + suffix:22} {means}   {seconds:8.1f}         {weights}", flush=True)
    print("\ndifference of NDCG@10, and p of the paired t-test on NDCG@1, @3, @10")
    for a, b in (
        ("PLSA (lambda2=0)", "UM"),
        ("PLSA", "UM"),
        ("BLTM", "PLSA"),
        ("BLTM", "UM"),
        ("WTM_M1", "UM"),
        ("WTM_M1", "BLTM"),
        ("BLTM-PR", "BLTM"),
        ("BLTM-PR (lambda2=0)", "BLTM (lambda2=0)"),
        ("BLTM-PR-1V", "BLTM-PR"),
        ("BLTM-PR-1V (lambda2=0)", "BLTM-PR (lambda2=0)"),
        ("BLTM-PR-1V", "WTM_M1"),
    ):
        p = "  ".join(f"{ttest_rel(rows[a][i], rows[b][i]).pvalue:.4f}" for i in range(3))
        print(f"{a:22} - {b:20} {(rows[a][-1] - rows[b][-1]).mean():+.4f}  {p}")
    print("\ngradients per pair in the projection, by EM iteration (Figure 2)")
    for name in ("BLTM-PR", "BLTM-PR-1V"):
        lines = topics[name].history_  # type: ignore[attr-defined]
        print(f"{name:12}" + " ".join(f"{line.evaluations:.1f}" for line in lines))


if __name__ == "__main__":
    main()
