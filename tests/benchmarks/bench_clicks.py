"""Click models against their slow twins on one simulated log: the same numbers, and how long.

    python tests/benchmarks/bench_clicks.py [--sessions 20000] [--seed 0]

Sessions of users who click by position, on 100 queries of 20 documents, pages of 10 results. Twins
(tests/reference/click_twins.py) are loops over sessions and dictionaries, as click models are
usually written; both take as many steps of EM and predict the log; ours give standard errors, too.
PyClick by Ilya Markov could not be installed from a registry: the package of that name there moves
the mouse. Reading is timed on the same log as TSV.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from timing import seconds_of, timed

from letor.dataset import RankingData
from ltr_features.clicks.cascade_models import Cascade
from ltr_features.clicks.dependent_click import DependentClick
from ltr_features.clicks.dynamic_bayesian import DynamicBayesian
from ltr_features.clicks.position_models import PositionBased
from ltr_features.clicks.reading import read_click_rows
from ltr_features.clicks.simulation import Simulation

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))
import click_twins as twins

STEPS = 5


def make_simulation(seed):
    rng = np.random.default_rng(seed)
    n = 100 * 20
    ids = np.array([f"d{i}" for i in range(n)], dtype=object)
    queries = np.repeat([f"q{i}" for i in range(100)], 20)
    data = RankingData.from_rows(
        rng.random((n, 1)), rng.integers(0, 3, n), queries, document_ids=ids
    )
    return Simulation(data, data.X[:, 0], exploration=0.5, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    simulation = make_simulation(arguments.seed)
    seconds, log = timed(simulation.log, arguments.sessions)
    held_out = make_simulation(arguments.seed + 1_000).log(2_000)
    print(f"{arguments.sessions:,} sessions, {len(log.pages):,} distinct, {log.n_pairs:,} pairs; "
          f"simulated in {seconds:.1f} s")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        n_rows = simulation.write(arguments.sessions, Path(folder) / "log.tsv")
        seconds = seconds_of(read_click_rows, Path(folder) / "log.tsv")
    print(f"read {n_rows:,} rows in {seconds:.1f} s: {n_rows / seconds / 1e6:.2f} million a second")
    sessions = twins.sessions_of(log)
    em = {"tolerance": 1e-300, "max_iterations": STEPS}
    rows = []
    for make, twin in (
        (lambda: PositionBased(**em), pbm),
        (Cascade, cascade),
        (lambda: DependentClick(**em), dcm),
        (lambda: DynamicBayesian(**em), dbn),
    ):
        small = simulation.log(50)
        make().fit(small).predict(small)  # compiles
        log = simulation.log(arguments.sessions)
        fast, (model, own) = timed(fitted_and_predicted, make(), log)
        slow, (parameters, (likelihood, perplexity)) = timed(twin, sessions)
        # After so many steps for pairs the twin of pbm is not where halving is: compare gamma.
        values = model.examination_ if model.name == "pbm" else model.attractiveness_
        theirs = np.array([parameters[key] for key in range(len(values))])
        rows.append(
            {
                "model": model.name,
                "seconds": fast,
                "twin": slow,
                "times faster": slow / fast,
                "parameters": np.abs(theirs - values).max(),
                "log-likelihood": own.log_likelihood,
                "twin's": likelihood,
                "perplexity": own.perplexity,
                "twin's ": perplexity,
                "held out": model.predict(held_out).perplexity,
            }
        )
    print(f"\n{STEPS} steps of EM for shared parameters, {STEPS} for those of pairs; prediction:")
    with pd.option_context("display.width", 200):
        print(pd.DataFrame(rows).to_string(index=False, float_format=lambda x: f"{x:.6g}"))


def fitted_and_predicted(model, log):
    return model.fit(log), model.predict(log)


def pbm(sessions):
    alpha, gamma = twins.pbm(sessions, iterations=STEPS)
    return gamma, twins.prediction(sessions, twins.by_position(alpha, gamma))


def cascade(sessions):
    alpha = twins.cascade(sessions)
    return alpha, twins.prediction(sessions, twins.downwards(alpha, lambda *_: 0.0, 1.0))


def dcm(sessions):
    alpha, lam = twins.dcm(sessions, iterations=STEPS)
    return alpha, twins.prediction(sessions, twins.downwards(alpha, lambda _, k: lam[k], 1.0))


def dbn(sessions):
    alpha, sigma, gamma = twins.dbn(sessions, iterations=STEPS)
    after = twins.downwards(alpha, lambda p, _: gamma * (1 - sigma[p]), gamma)
    return alpha, twins.prediction(sessions, after)


if __name__ == "__main__":
    main()
