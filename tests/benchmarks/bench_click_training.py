"""Rankers trained on raw clicks, on debiased clicks and on true labels, by number of sessions: the
five official folds of LETOR 4.0 MQ2008, with simulated users.

    LTR_DATA=<folder of data sets> python tests/benchmarks/bench_click_training.py
        [--sessions 1000 10000 100000] [--seeds 3] [--out FOLDER]

Fixed before any result was seen, and the same for all: in production is a LambdaMART of 20 trees,
trained on the labels of 5 % of the training queries; a session shows its best 10 results, with
exploration 0.5 (Gumbel noise on standardised scores); users examine rank r with probability 1 / r
and click examined results of grade 0 with probability 0.1. The sessions of a fold are spread over
its training and validation queries; all that is learned from clicks, early stopping too, sees
clicks alone. Labels are 21 grades of the attractiveness that a click model gives a pair (raw: click
rates; debiased: position-based model by EM), of pairs with one examination or more; the prior is
that of two examinations at the click rate of the first position. LambdaMART has its default
settings, with the gain of a grade linear for labels from clicks. Test queries have their true
labels: NDCG@10, mean over all 784 queries, each tested once a seed; intervals are of the paired
bootstrap over queries (10,000 draws, 95 %), after averaging over seeds.

The share of the gap that is closed is (debiased - raw) / (true - raw), of means.
"""

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from letor.evaluation import per_query
from letor.fold_files import concatenate, read_folds
from letor.measures import parse_measure
from letor.rankers.lambdamart import LambdaMART
from ltr_features.clicks.judging import ClickJudgements, estimate_clicks
from ltr_features.clicks.position_models import ClickRate, PositionBased
from ltr_features.clicks.simulation import Simulation, Users

PRODUCTION_SHARE, PRODUCTION_TREES = 0.05, 20
USERS, DEPTH, EXPLORATION = Users("pbm", eta=1.0, noise=0.1), 10, 0.5
N_GRADES, MIN_EVIDENCE, PSEUDO = 21, 1.0, 2.0
MODELS = {"raw clicks": ClickRate, "debiased clicks": PositionBased}
DRAWS = 10_000


def production_ranker(train, seed):
    """A weak ranker: few queries, few trees. Draws of queries without two labels are drawn anew."""
    rng = np.random.default_rng([seed, 1])
    size = max(1, round(PRODUCTION_SHARE * train.n_queries))
    while True:
        chosen = rng.choice(train.n_queries, size, replace=False)
        rows = train.select_queries([train.query_ids[q] for q in np.sort(chosen)])
        if len(np.unique(rows.y)) > 1:
            break
    return LambdaMART(n_estimators=PRODUCTION_TREES, min_data_in_leaf=5, seed=seed).fit(rows)


def prior_of(log):
    """So many examinations at the click rate of the first position."""
    first = log.result_position == 0
    rate = log.clicked[first].sum() / log.shown[first].sum()
    return PSEUDO * rate, PSEUDO * (1 - rate)


def from_clicks(kind, log, train, valid, seed):
    """A ranker that has seen clicks alone."""
    model = kind(prior=prior_of(log)).fit(log)
    judgements = ClickJudgements(model, min_evidence=MIN_EVIDENCE, n_grades=N_GRADES)
    ranker = LambdaMART(gain="linear", measure="linear:ndcg@10", seed=seed)
    return ranker.fit(judgements.label(train), judgements.label(valid))


def ndcg(ranker, test):
    return per_query(test, ranker.predict(test), [parse_measure("ndcg@10")]).iloc[:, 0]


def counterfactual(simulation, n, ranker, seed):
    """Clicks per page of a trained ranker: estimated from as many other sessions, since those that
    it was trained on flatter it, and asked of the users."""
    both = simulation.data
    scores = ranker.predict(both)
    log = replace(simulation, seed=seed + 500).log(n)
    model = PositionBased(prior=prior_of(log), jackknife=True).fit(log)
    queries = np.asarray(both.query_ids, dtype=object)[both.query_index]
    run = pd.DataFrame({"qid": queries, "docno": both.document_ids, "score": scores})
    estimate = estimate_clicks(
        log, model.examination_, run, covariance=model.examination_covariance_
    )
    shown = Simulation(both, scores, USERS, depth=DEPTH, seed=seed + 1_000).log(100_000)
    return {
        "logged": estimate.logged,
        "estimate": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "never shown": estimate.unseen,
        "asked": shown.clicked.sum() / shown.n_pages,
    }


def of_fold(parts, seed, sessions):
    """(NDCG of test queries by what was trained on and sessions; counterfactual estimates)."""
    train, valid, test = parts
    table, estimates = {}, []
    table["true labels", 0] = ndcg(LambdaMART(seed=seed).fit(train, valid), test)
    production = production_ranker(train, seed)
    table["production", 0] = ndcg(production, test)
    both = concatenate([train, valid])
    simulation = Simulation(
        both, production.predict(both), USERS, depth=DEPTH, exploration=EXPLORATION, seed=seed
    )
    for n in sessions:
        log = simulation.log(n)
        for name, kind in MODELS.items():
            ranker = from_clicks(kind, log, train, valid, seed)
            table[name, n] = ndcg(ranker, test)
        estimates.append({"sessions": n, **counterfactual(simulation, n, ranker, seed)})
    return table, estimates


def intervals(values, sessions):
    """A row per number of sessions, with intervals over queries."""
    rng = np.random.default_rng(0)
    queries = rng.integers(len(values), size=(DRAWS, len(values)))
    true = values["true labels", 0].to_numpy()
    rows = []
    for n in sessions:
        raw, debiased = (values[name, n].to_numpy() for name in MODELS)
        gap, gain = true - raw, debiased - raw
        draws_gap, draws_gain = gap[queries].mean(axis=1), gain[queries].mean(axis=1)
        rows.append(
            {
                "sessions": n,
                "raw": raw.mean(),
                "debiased": debiased.mean(),
                "true": true.mean(),
                "gap": gap.mean(),
                "gap 95 %": "{:.4f} .. {:.4f}".format(*np.quantile(draws_gap, [0.025, 0.975])),
                "gain": gain.mean(),
                "gain 95 %": "{:.4f} .. {:.4f}".format(*np.quantile(draws_gain, [0.025, 0.975])),
                "closed": gain.mean() / gap.mean(),
                "closed 95 %": "{:.2f} .. {:.2f}".format(
                    *np.quantile(draws_gain / draws_gap, [0.025, 0.975])
                ),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for the per-query values")
    arguments = parser.parse_args()
    if "LTR_DATA" not in os.environ:
        sys.exit("set LTR_DATA to the folder of the research data sets")
    data, folds = read_folds(Path(os.environ["LTR_DATA"]) / "letor4_mq2008", n_columns=46)
    ids = np.array([f"row{row}" for row in range(len(data))], dtype=object)
    data = replace(data, document_ids=ids)
    start, by_seed, estimates = time.perf_counter(), [], []
    for seed in range(arguments.seeds):
        tables = []
        for number, fold in enumerate(folds):
            table, found = of_fold(fold.split(data), seed, arguments.sessions)
            tables.append(pd.DataFrame(table))
            estimates += [{"seed": seed, "fold": number + 1, **row} for row in found]
        by_seed.append(pd.concat(tables))
        print(f"seed {seed}: {time.perf_counter() - start:.0f} s", flush=True)
    values = sum(by_seed) / len(by_seed)
    with pd.option_context("display.width", 220, "display.max_columns", 20):
        print(f"\nNDCG@10, {len(values)} queries, {len(by_seed)} seeds; in production: "
              f"{values['production', 0].mean():.4f}")  # fmt: skip
        print(intervals(values, arguments.sessions).round(4).to_string(index=False))
        frame = pd.DataFrame(estimates)
        frame["within"] = (frame["low"] <= frame["asked"]) & (frame["asked"] <= frame["high"])
        print("\nClicks per page of the ranker trained on debiased clicks, by the log and asked:")
        print(frame.groupby("sessions").mean().drop(columns=["seed", "fold"]).round(4).to_string())
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        values.to_csv(arguments.out / "ndcg.csv")
        frame.to_csv(arguments.out / "clicks.csv", index=False)


if __name__ == "__main__":
    main()
