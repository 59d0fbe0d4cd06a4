"""LETOR 4.0 MQ2008 over the five official folds: single columns as rankings, and rankers, with the
seconds of training per fold that they take.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_rankers.py [--repeats 3]

Official = Eval-Score-4.0.pl; textbook = gain 2^label - 1, discount 1/log2(rank + 1), queries
without relevant documents count 0. Every number is the mean of the five folds' test queries.

Ours run with their default settings and early stopping on the validation fold, on one thread, after
one fit that compiles. RankLib's seconds are those of its defaults (ListNet and RankNet with
learning rate 0.001) measured once on a machine of two cores: start Java anew to compare elsewhere.
"""

import argparse
from statistics import mean, median

import pandas as pd
from data_sets import mq2008
from timing import timed

from letor.evaluation import evaluate, side_by_side
from letor.measures import parse_measure
from letor.rankers.registry import get_ranker

RANKLIB = {"adarank": 4.0, "rankboost": 7.4, "listnet": 21.0, "ranknet": 14.0, "lambdamart": 3.7}
MEASURES = {
    "official MAP": "letor4:map",
    "official NDCG@5": "letor4:ndcg@5",
    "official NDCG@10": "letor4:ndcg@10",
    "official MeanNDCG": "letor4:meanndcg",
    "textbook NDCG@10": "ndcg@10",
    "textbook NDCG@20": "ndcg@20",
}
COLUMNS = {"25": "BM25, whole document", "40": "LMIR.JM, whole document", "19": "DL, URL"}


def quality(parts, scores) -> dict[str, float]:
    """The mean over folds of each measure's mean over the fold's test queries."""
    definitions = [parse_measure(text) for text in MEASURES.values()]
    values = [
        evaluate(test, own, definitions).mean().to_numpy()
        for (_, _, test), own in zip(parts, scores, strict=True)
    ]
    return dict(pd.DataFrame(values, columns=list(MEASURES)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many runs counts")
    arguments = parser.parse_args()
    data, folds = mq2008()
    parts = [fold.split(data) for fold in folds]
    table = {}
    for column, meaning in COLUMNS.items():
        scores = [test.column(column) for _, _, test in parts]
        table[f"column {column} ({meaning})"] = quality(parts, scores)
    for name in [*RANKLIB, "xgboost", "coordinate-ascent"]:
        kind = get_ranker(name)

        def ranked(train, valid, test, kind=kind):
            return kind().fit(train, valid).predict(test)

        ranked(*parts[0])  # compiles
        runs = [[timed(ranked, *part) for _ in range(arguments.repeats)] for part in parts]
        seconds = mean(median(taken for taken, _ in of_fold) for of_fold in runs)
        peer = RANKLIB.get(name, float("nan"))
        table[name] = {
            "seconds": seconds, "RankLib": peer, "ratio": peer / seconds,
            **quality(parts, [of_fold[-1][1] for of_fold in runs]),
        }  # fmt: skip
    with pd.option_context("display.width", 200, "display.max_colwidth", 120):
        print(pd.DataFrame(table).T.round(4).to_string())
        print("\nColumn 25 under all definitions, all queries:")
        print(side_by_side(data, data.column("25")).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
