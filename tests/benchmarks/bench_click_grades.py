"""Where grades from clicks should begin: at no relevance, or at the mean of the judged pairs.

    LTR_DATA=FOLDER python tests/benchmarks/bench_click_grades.py

BM25 is in production on Cranfield. Users examine rank r with probability 1 / r, and click on one of
ten examined results that are not relevant (20,000 sessions on four fifths of the queries, rankings
vary). A better ranking of the shown queries is made from their true grades and noise. Both rankings
are measured by true grades and by grades from clicks, which should agree on which is better. S2Net
learns from the grades, and re-ranks BM25's best 100 documents for the other queries, by true
grades. Means over five folds. Takes two minutes.

====================  =====  =================  =============
grades                true   from no relevance  from the mean
====================  =====  =================  =============
relevant pairs        851    668                224
MAP, BM25             .268   .449               .221
MAP, better ranking   .574   .447               .346
P@5, BM25             .301   .500               .187
P@5, better ranking   .605   .449               .225
NDCG@10, BM25         .331   .433               .273
NDCG@10, better       .687   .478               .366
NDCG@10, S2Net        .383   .339               .358
====================  =====  =================  =============
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from letor.evaluation import evaluate
from ltr_features.clicks.judging import ClickJudgements
from ltr_features.clicks.models import get_click_model
from ltr_features.clicks.simulation import Simulation
from ltr_features.studies.identity import Digests
from ltr_features.studies.kinds.clicks_config import ClicksConfig
from ltr_features.studies.kinds.clicks_learners import MatchingLearners

MEASURES = ["map", "p@5", "ndcg@10"]
FILE = {
    "kind": "clicks",
    "title": "Grades",
    "matching": {
        "collection": {"source": "beir", "folder": "cranfield"},
        "tested": 5,
        "models": [
            {
                "name": "s2net",
                "model": "s2net",
                "params": {"margin": 0.1, "symmetric": True, "max_epochs": 50},
            }
        ],
    },
}


def from_no_relevance(judged: ClickJudgements) -> np.ndarray:
    """Grades in proportion to relevance."""
    share = np.minimum(judged.model.relevance_ / judged.best, 1.0)
    return np.where(judged.enough, np.floor(4 * share + 0.5), 0)


def main() -> None:
    config = ClicksConfig.model_validate(FILE)
    assert config.matching is not None
    data = Path(os.environ["LTR_DATA"])
    learners = MatchingLearners(config, config.matching, data, Digests())
    every, found = learners.rows, []
    ids = np.asarray(every.query_ids, dtype=object)[every.query_index]
    rows = pd.MultiIndex.from_arrays([ids, every.document_ids])
    for number, fold in enumerate(learners.folds):
        learner = learners.learner("s2net", fold, number)
        shown, rng = learner.shown, np.random.default_rng(number)
        bm25 = learner.production.scores(shown)
        better = bm25 / bm25.std() + shown.y + rng.normal(size=len(shown)) / 2
        log = Simulation(shown, bm25, config.users.behaviour, 10, 0.5, number).log(20_000)
        judged = ClickJudgements(get_click_model("pbm")().fit(log))
        grades = {
            "true": None,
            "from no relevance": from_no_relevance(judged),
            "from the mean": np.maximum(judged.grade, 0),
        }
        frame = judged.frame()
        pairs = pd.MultiIndex.from_frame(frame[["query", "document"]])
        for name, grade in grades.items():
            if grade is not None:
                y = pd.Series(grade, pairs).reindex(rows, fill_value=0).to_numpy(np.float32)
                learners.rows = replace(every, y=y)  # a model learns from these
            taught = learners.learner("s2net", fold, number)
            learners.rows, labelled = every, taught.shown
            ranks = taught.of_labels().scores(learner.test)
            found.append(
                {"grades": name, "relevant": int((labelled.y > 0).sum())}
                | {f"{m} BM25": evaluate(labelled, bm25, [m]).mean().item() for m in MEASURES}
                | {f"{m} better": evaluate(labelled, better, [m]).mean().item() for m in MEASURES}
                | {"S2Net": evaluate(learner.test, ranks, ["ndcg@10"]).mean().item()}
            )
    means = pd.DataFrame(found).groupby("grades", sort=False).mean()
    print(means.T.round(3).to_string())


if __name__ == "__main__":
    main()
