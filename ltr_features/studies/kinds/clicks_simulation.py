"""Simulate a fold of an experiment with clicks, and learn from the clicks and from labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from letor.dataset import RankingData
from letor.evaluation import evaluate
from letor.measures import parse_measure
from letor.trec import qrels_of, run_of
from ltr_features.clicks.base import prior_of
from ltr_features.clicks.counterfactual import estimate_clicks
from ltr_features.clicks.judging import ClickJudgements
from ltr_features.clicks.log import ClickLog
from ltr_features.clicks.models import get_click_model
from ltr_features.clicks.output import by_label, curve
from ltr_features.clicks.position_models import PositionBased
from ltr_features.clicks.simulation import Simulation
from ltr_features.studies.kinds.clicks_config import RAW, ClicksConfig
from ltr_features.studies.kinds.clicks_learners import Learned, Learner

TRUE, PRODUCTION = "true labels", "in production"
#: Kinds of clicks that training queries are judged by.
JUDGES = ("raw", "debiased")
#: Offsets of the seeds of a fold's further logs from the seed of its first log.
_ANOTHER, _ASKED = 500, 1_000


def simulate_fold(
    config: ClicksConfig, learner: Learner, seed: int
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Train on labels, and on raw and debiased clicks of logs of all sizes.

    Everything that is learned from clicks, including when to stop early, depends only on clicks.
    Test queries are judged by their true labels.

    Returns:
        The measure of each test query (index ``qid``), a column for each ranker ("true labels", "in
        production", "raw 1000", ...); and facts on the clicks for each size of the log.
    """
    shown, test = learner.shown, learner.test

    def measured(learned: Learned) -> pd.Series:
        return evaluate(test, learned.scores(test), [parse_measure(config.measure)]).iloc[:, 0]

    simulation = Simulation(
        shown, learner.production.scores(shown), config.users.behaviour, config.users.depth,
        config.users.exploration, seed,
    )  # fmt: skip
    values = {TRUE: measured(learner.of_labels()), PRODUCTION: measured(learner.production)}
    facts = []
    for n in config.sessions:
        log = simulation.log(n)
        found = {judge: _judged(config, judge, log) for judge in JUDGES}
        learned = {judge: learner.of_clicks(judgements) for judge, judgements in found.items()}
        values |= {f"{judge} {n}": measured(fit) for judge, fit in learned.items()}
        facts.append(
            {
                "sessions": n,
                "remarks": {judge: list(fit.remarks) for judge, fit in learned.items()},
                **_click_facts(found["debiased"], shown),
                **_estimated(config, simulation, n, learned["debiased"]),
            }
        )
    return pd.DataFrame(values).rename_axis("qid"), facts


def _judged(config: ClicksConfig, judge: str, log: ClickLog) -> ClickJudgements:
    kind = get_click_model(RAW if judge == "raw" else config.model)
    model = kind(prior=prior_of(log, config.prior_examinations)).fit(log)
    return ClickJudgements(model, min_evidence=config.min_evidence, n_grades=config.n_grades)


def _click_facts(judgements: ClickJudgements, rows: RankingData) -> dict[str, Any]:
    """Examination by position, clicks by label, and queries with too little evidence."""
    positions = curve(judgements.model)[["position", "click_rate", "examination"]]
    never_shown = rows.n_queries - len(judgements.log.query_ids)
    return {
        "positions": positions.to_dict("records"),
        "labels": by_label(judgements, qrels_of(rows)).to_dict("records"),
        "queries": rows.n_queries,
        "thin queries": never_shown + len(judgements.thin_queries),
    }


def _estimated(
    config: ClicksConfig, simulation: Simulation, n: int, learned: Learned
) -> Mapping[str, float]:
    """Clicks per page of the trained ranker: estimated from as many other sessions, since those of
    training would overestimate them, and as simulated users really click on its ranking."""
    rows = simulation.data
    scores = learned.scores(rows)
    log = replace(simulation, seed=simulation.seed + _ANOTHER).log(n)
    prior = prior_of(log, config.prior_examinations)
    model = PositionBased(prior=prior, jackknife=True).fit(log)
    estimate = estimate_clicks(
        log, model.examination_, run_of(rows, scores), covariance=model.examination_covariance_
    )
    shown = replace(simulation, scores=scores, exploration=0.0, seed=simulation.seed + _ASKED).log(
        config.asked
    )
    return {
        "logged": estimate.logged,
        "estimate": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "never shown": estimate.unseen,
        "most": estimate.most,
        "asked": float(shown.clicked.sum() / shown.n_pages),
    }
