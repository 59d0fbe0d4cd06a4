"""A fold of an experiment with simulated clicks: what rankers learn from clicks and from labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.evaluation import per_query
from letor.fold_files import concatenate
from letor.measures import parse_measure
from letor.rankers.lambdamart import LambdaMART
from letor.trec import qrels_of, run_of
from ltr_features.clicks.judging import ClickJudgements, estimate_clicks
from ltr_features.clicks.log import ClickLog
from ltr_features.clicks.models import get_click_model
from ltr_features.clicks.output import by_label, curve
from ltr_features.clicks.position_models import PositionBased
from ltr_features.clicks.simulation import Simulation
from ltr_features.studies.kinds.clicks_config import RAW, ClicksConfig

TRUE, PRODUCTION = "true labels", "in production"
#: What judges the training queries, for a log of some size.
JUDGES = ("raw", "debiased")
#: Further logs of a fold have seeds so far from that of the first, and from each other.
_ANOTHER, _ASKED = 500, 1_000

Parts = tuple[RankingData, RankingData, RankingData]


def simulate_fold(
    config: ClicksConfig, parts: Parts, seed: int
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Train a ranker on labels, and on raw and debiased clicks of logs of all sizes.

    The sessions are of the training and validation queries; all that is learned from clicks, early
    stopping too, sees clicks alone. Test queries are judged by their true labels.

    Args:
        parts: training, validation and test rows, with document ids.

    Returns:
        The measure of each test query (index ``qid``), a column for each ranker ("true labels", "in
        production", "raw 1000", ...); and for each size what the clicks say.
    """
    train, valid, test = parts

    def measured(ranker: LambdaMART) -> pd.Series:
        return per_query(test, ranker.predict(test), [parse_measure(config.measure)]).iloc[:, 0]

    production = production_ranker(config, train, seed)
    both = concatenate([train, valid])
    simulation = Simulation(
        both, production.predict(both), config.users.behaviour, config.users.depth,
        config.users.exploration, seed,
    )  # fmt: skip
    values = {TRUE: measured(LambdaMART(seed=seed).fit(train, valid))}
    values[PRODUCTION] = measured(production)
    told = []
    for n in config.sessions:
        log = simulation.log(n)
        found = {judge: _judged(config, judge, log) for judge in JUDGES}
        rankers = {
            judge: LambdaMART(gain="linear", measure=f"linear:{config.measure}", seed=seed).fit(
                judgements.label(train), judgements.label(valid)
            )
            for judge, judgements in found.items()
        }
        values |= {f"{judge} {n}": measured(ranker) for judge, ranker in rankers.items()}
        told.append(
            {
                "sessions": n,
                **_what_clicks_say(found["debiased"], both),
                **_estimated(config, simulation, n, rankers["debiased"]),
            }
        )
    return pd.DataFrame(values).rename_axis("qid"), told


def production_ranker(config: ClicksConfig, train: RankingData, seed: int) -> LambdaMART:
    """A weak ranker: few queries, few trees. Draws whose labels are all the same are drawn anew."""
    rng = np.random.default_rng([seed, 1])
    size = max(1, round(config.production.share * train.n_queries))
    for _ in range(1_000):
        chosen = np.sort(rng.choice(train.n_queries, size, replace=False))
        rows = train.select_queries([train.query_ids[q] for q in chosen])
        if len(np.unique(rows.y)) > 1:
            break
    return LambdaMART(n_estimators=config.production.trees, min_data_in_leaf=5, seed=seed).fit(rows)


def _prior(config: ClicksConfig, log: ClickLog) -> tuple[float, float]:
    """Of click models: some examinations at the click rate of the first position."""
    first = log.result_position == 0
    rate = float(log.clicked[first].sum() / log.shown[first].sum())
    return config.prior_examinations * rate, config.prior_examinations * (1 - rate)


def _judged(config: ClicksConfig, judge: str, log: ClickLog) -> ClickJudgements:
    kind = get_click_model(RAW if judge == "raw" else config.model)
    model = kind(prior=_prior(config, log)).fit(log)
    return ClickJudgements(model, min_evidence=config.min_evidence, n_grades=config.n_grades)


def _what_clicks_say(judgements: ClickJudgements, rows: RankingData) -> dict[str, Any]:
    """Examination by position, clicks by label, and queries with too little evidence."""
    positions = curve(judgements.model)[["position", "click_rate", "examination"]]
    return {
        "positions": positions.to_dict("records"),
        "labels": by_label(judgements, qrels_of(rows)).to_dict("records"),
        "queries": len(judgements.log.query_ids),
        "thin queries": len(judgements.thin_queries),
    }


def _estimated(
    config: ClicksConfig, simulation: Simulation, n: int, ranker: LambdaMART
) -> Mapping[str, float]:
    """Clicks per page of a trained ranker: estimated from as many other sessions, since those that
    it was trained on flatter it, and asked of the users."""
    rows = simulation.data
    scores = ranker.predict(rows)
    log = replace(simulation, seed=simulation.seed + _ANOTHER).log(n)
    model = PositionBased(prior=_prior(config, log), jackknife=True).fit(log)
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
        "asked": float(shown.clicked.sum() / shown.n_pages),
    }
