"""Seconds of training per fold of MQ2008, and the quality that they buy.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_rankers.py [--repeats 3]

Ours run with their default settings and early stopping on the validation fold, on one thread, after
one fit that compiles. RankLib's seconds are those of its defaults (ListNet and RankNet with
learning rate 0.001) measured once on a machine of two cores: start Java anew to compare elsewhere.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import pandas as pd

from letor.evaluation import evaluate
from letor.fold_files import read_folds
from letor.measures import parse_measure
from letor.rankers.registry import get_ranker

RANKLIB = {"adarank": 4.0, "rankboost": 7.4, "listnet": 21.0, "ranknet": 14.0, "lambdamart": 3.7}
MEASURES = {"NDCG@20": "ndcg@20", "official MAP": "letor4:map"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many runs counts")
    arguments = parser.parse_args()
    if "LTR_DATA" not in os.environ:
        sys.exit("set LTR_DATA to the folder of the research data sets")
    data, folds = read_folds(Path(os.environ["LTR_DATA"]) / "letor4_mq2008", n_columns=46)
    parts = [fold.split(data) for fold in folds]
    definitions = [parse_measure(text) for text in MEASURES.values()]
    table = {}
    for name in [*RANKLIB, "xgboost", "coordinate-ascent"]:
        kind = get_ranker(name)
        kind().fit(parts[0][0], parts[0][1]).predict(parts[0][2])
        seconds, values = [], []
        for train, valid, test in parts:
            runs = []
            for _ in range(arguments.repeats):
                start = time.perf_counter()
                scores = kind().fit(train, valid).predict(test)
                runs.append(time.perf_counter() - start)
            seconds.append(statistics.median(runs))
            values.append(evaluate(test, scores, definitions).mean().to_numpy())
        mean = statistics.mean(seconds)
        quality = pd.DataFrame(values, columns=list(MEASURES)).mean()
        peer = RANKLIB.get(name, float("nan"))
        table[name] = {"seconds": mean, "RankLib": peer, "ratio": peer / mean, **quality}
    print(pd.DataFrame(table).T.round(4).to_string())


if __name__ == "__main__":
    main()
