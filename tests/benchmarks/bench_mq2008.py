"""LETOR 4.0 MQ2008: single columns as rankings, and LambdaMART over the five official folds.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_mq2008.py [--seeds 3]

Official = Eval-Score-4.0.pl; textbook = gain 2^label - 1, discount 1/log2(rank + 1), queries
without relevant documents count 0. Every number is the mean of the five folds' test queries.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import pandas as pd

from letor.evaluation import evaluate, side_by_side
from letor.fold_files import read_folds
from letor.measures import parse_measure
from letor.rankers.lambdamart import LambdaMART

MEASURES = {
    "official MAP": "letor4:map",
    "official NDCG@5": "letor4:ndcg@5",
    "official NDCG@10": "letor4:ndcg@10",
    "official MeanNDCG": "letor4:meanndcg",
    "textbook NDCG@10": "ndcg@10",
    "textbook NDCG@20": "ndcg@20",
}
COLUMNS = {"25": "BM25, whole document", "40": "LMIR.JM, whole document", "19": "DL, URL"}


def mean_of_folds(folds, data, scores_of):
    """One row: the mean over folds of each measure's mean over the fold's test queries."""
    rows = []
    for fold in folds:
        train, valid, test = fold.split(data)
        scores = scores_of(train, valid, test)
        table = evaluate(test, scores, [parse_measure(m) for m in MEASURES.values()])
        rows.append(table.mean().to_numpy())
    return pd.DataFrame(rows, columns=list(MEASURES)).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="LambdaMART is run once per seed")
    arguments = parser.parse_args()
    if "LTR_DATA" not in os.environ:
        sys.exit("set LTR_DATA to the folder of the research data sets")
    data, folds = read_folds(Path(os.environ["LTR_DATA"]) / "letor4_mq2008", n_columns=46)

    table = {}
    for column, meaning in COLUMNS.items():
        table[f"column {column} ({meaning})"] = mean_of_folds(
            folds, data, lambda _train, _valid, test, c=column: test.column(c)
        )
    for seed in range(arguments.seeds):
        start = time.perf_counter()
        table[f"LambdaMART, seed {seed}"] = mean_of_folds(
            folds,
            data,
            lambda train, valid, test, s=seed: LambdaMART(seed=s).fit(train, valid).predict(test),
        )
        print(f"LambdaMART, seed {seed}: {(time.perf_counter() - start) / 5:.2f} s per fold")
    with pd.option_context("display.width", 200, "display.max_colwidth", 120):
        print(pd.DataFrame(table).T.round(4).to_string())
        print("\nColumn 25 under all definitions, all queries:")
        print(side_by_side(data, data.column("25")).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
