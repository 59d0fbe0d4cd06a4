"""A realistic synthetic report, for the tests of tables and pages (and to look at)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ltr_features.studies.page.query_rankings import RankedDocument
from ltr_features.studies.page.report import (
    ColumnInfo,
    Curve,
    Report,
    Study,
    SystemResult,
)
from ltr_features.studies.page.tables import Column, Table
from ltr_features.studies.statistics.embedding_map import embedding_map
from ltr_features.studies.statistics.hard_queries import hard_query_table
from ltr_features.studies.statistics.learning_curve import learning_curve
from ltr_features.studies.statistics.precision_recall import LEVELS
from ltr_features.studies.statistics.query_classes import query_classes
from ltr_features.studies.statistics.refits import mean_values
from ltr_features.studies.statistics.significance import TestSettings

MEASURES = ["NDCG@10", "NDCG@20", "MAP", "P@10"]
FAMILIES = {
    "term counts": ["TF body", "TF title", "IDF", "TF·IDF body", "TF·IDF title", "length body"],
    "BM25": ["BM25 body", "BM25 title", "BM25 anchor", "BM25 whole"],
    "links": ["in-links", "out-links"],
    "trained models": ["SSI U'V+I body", "SSI U'V+I title", "SSI diagonal"],
}
WORDS = [
    "alkali", "metal", "anarchist", "treaty", "river", "basin", "glacier", "novel",
    "composer", "orbit", "enzyme", "protein", "parliament", "coast", "harbour", "dynasty",
    "grammar", "vowel", "theorem", "matrix", "planet", "comet", "railway", "bridge",
    "sculpture", "fresco", "cathedral", "abbey", "saint", "emperor", "battle", "siege",
    "archipelago", "volcano",
]  # fmt: skip


def example_report(
    n_queries: int = 240, n_systems: int = 6, seed: int = 0, hostile: str = ""
) -> Report:
    """Two studies: one where the models help, one where they do not. ``hostile`` is put into
    every text that a user could supply."""
    rng = np.random.default_rng(seed)
    effects = np.concatenate([[0.0, 0.05, 0.085, 0.12, -0.03], np.linspace(0, 0.1, 40)])
    helped = _study(
        rng, "Held-out queries", n_queries, effects[:n_systems], hostile,
        description="Test queries are new, their articles are not: can a trained column help a "
        "ranker that already counts words?",
        split_rule="Queries are split at random into five folds; models and rankers are trained "
        "on three, stopped early on the fourth, tested on the fifth.",
    )  # fmt: skip
    unhelped = _study(
        rng, "Held-out articles", max(n_queries // 3, 5), effects[:n_systems] * 0.05, hostile,
        description="Test queries come from articles of which the models have seen no link.",
        split_rule="Articles are split at random into five folds, with all their queries.",
        group_size=4, n_fits=3,
    )  # fmt: skip
    epochs = list(range(1, 31))
    curve = Curve(
        name="SSI U'V+I" + hostile,
        x_label="epoch",
        y_label="mean average precision",
        series={
            "training queries": (epochs, list(0.28 + 0.2 * (1 - np.exp(-np.arange(30) / 8)))),
            "held-out training queries": (
                epochs,
                list(0.28 + 0.08 * (1 - np.exp(-np.arange(30) / 5)) - 0.001 * np.arange(30)),
            ),
        },
        best_x=14,
        description="Stopped where the held-out training queries were best.",
    )
    words = Table(
        "Nearest words under SSI U'V+I" + hostile,
        ["Word", Column("Nearest words, nearest first", number=False)],
        [
            (w, ", ".join(f"{v} {0.9 - 0.07 * i:.2f}" for i, v in enumerate(rng.choice(WORDS, 6))))
            for w in WORDS[:8]
        ],
        "Cosine of the document-side factors; query word on the left.",
    )
    return Report(
        maps=[
            embedding_map(
                "SSI U'V+I" + hostile,
                of,
                [labels[0] + hostile, *labels[1:]],
                rng.normal(size=(len(labels), 5)).astype(np.float32),
            )
            for of, labels in (("words", WORDS), ("documents", _titles(90)))
        ],
        title="Do trained columns help?" + hostile,
        introduction="Sections of 105 encyclopaedia articles are retrieved by keyword queries. A "
        "LambdaMART ranker sees word-counting columns, trained columns, or both; every number "
        "below is computed on queries that neither the models nor the rankers have seen." + hostile,
        studies=[helped, unhelped],
        facts={"Documents": "1,718 sections", "Words": "21,344", "Candidates per query": "100"},
        columns=[
            ColumnInfo(
                name=name,
                family=family,
                description=f"{name} of the query's words, summed" + hostile,
                reference="Qin & Liu 2013" if family != "trained models" else "Bai et al. 2009",
                trained_on="training queries of the fold; out-of-fold for training rows"
                if family == "trained models"
                else "nothing (counts of the collection)",
            )
            for family, names in FAMILIES.items()
            for name in names
        ],
        curves=[curve],
        nearest_words=[words],
        settings={
            "Task": {"folds": 5, "candidates": "BM25, 100 per query", "seed": seed},
            "SSI U'V+I": {"rank": 50, "learning rate": 0.05, "note": "as in the paper" + hostile},
            "LambdaMART": {"num_leaves": 31, "learning_rate": 0.05, "early stopping": True},
        },
        versions={"python": "3.11.7", "numpy": "2.4.6", "lightgbm": "4.7.0", "ranx": "0.3.21"},
        warnings=["The excerpt holds 105 articles only." + hostile] if hostile else [],
    )


def _titles(n: int) -> list[str]:
    return [
        f"{WORDS[i % 34].title()} of the {' '.join(WORDS[i % 7 : i % 7 + i % 5])} {i}"
        for i in range(n)
    ]


def _study(
    rng: np.random.Generator, name: str, n: int, effects: np.ndarray, hostile: str,
    description: str, split_rule: str, group_size: int = 1, n_fits: int = 1,
) -> Study:  # fmt: skip
    names = ["BM25", "Word counts", "Word counts + links", "Word counts + SSI", "SSI alone",
             "Everything"] + [f"Variant {i}" for i in range(1, 40)]  # fmt: skip
    difficulty = rng.beta(1.2, 1.6, n) * (rng.random(n) > 0.15)
    ids = [f"q{i:04d}" for i in range(n)]

    def frame(effect: float) -> pd.DataFrame:
        latent = np.clip(difficulty + (difficulty > 0) * rng.normal(effect, 0.13, n), 0, 1)
        noise = rng.normal(0, 0.04, (n, 4)) * (latent[:, None] > 0)
        values = np.clip(latent[:, None] * np.array([1, 1.04, 0.8, 0.5]) + noise, 0, 1)
        return pd.DataFrame(np.round(values, 6), index=ids, columns=MEASURES)

    columns = [c for family in FAMILIES.values() for c in family]
    seen = [[], columns[:10], columns[:12], columns[:10] + columns[12:], columns[12:], columns]
    systems = []
    for i, effect in enumerate(effects):
        used = seen[min(i, 5)]
        fits = [frame(effect) for _ in range(n_fits if used else 1)]
        gain = pd.DataFrame({"column": used, "gain": rng.gamma(0.6, 100, len(used))})
        systems.append(
            SystemResult(
                name=names[i] + hostile,
                description=f"{len(used)} columns by LambdaMART" if used else "no ranker" + hostile,
                per_query=mean_values(fits),
                fits=fits if n_fits > 1 and used else (),
                columns=used,
                importance=gain if used else None,
            )
        )
    baseline = systems[1]
    groups = (
        {q: f"Article {i // group_size}" for i, q in enumerate(ids)} if group_size > 1 else None
    )
    pairs = [(systems[3].name, baseline.name)] + [
        (s.name, baseline.name) for i, s in enumerate(systems) if i not in (1, 3)
    ]
    hard = hard_query_table(
        baseline.per_query["NDCG@20"],
        {systems[3].name: systems[3].per_query["NDCG@20"]},
        selectors={
            "BM25" + hostile: systems[0].per_query["NDCG@20"],
            "Word counts, other seed" + hostile: frame(effects[1])["NDCG@20"],
        },
        groups=groups,
        control=frame(effects[1])["NDCG@20"],
        settings=TestSettings(n_permutations=2000, n_resamples=1000),
    )
    test = TestSettings(n_permutations=2000, n_resamples=1000)
    properties = pd.DataFrame(
        {
            "words": rng.integers(1, 9, n),
            "entities": rng.integers(0, 4, n),
            "overlap": np.round(rng.random(n), 3),
        },
        index=pd.Index(ids, name="qid"),
    )
    kinds = query_classes(properties[difficulty > 0] if n > 9 else properties)
    return Study(
        name=name + hostile,
        description=description + hostile,
        split_rule=split_rule + hostile,
        systems=systems,
        pairs=pairs,
        measures=MEASURES,
        groups=groups,
        query_texts={q: " ".join(rng.choice(WORDS, 5)) + hostile for q in ids},
        facts={"Queries": f"{n:,}", "Recall of the candidates": "0.912" + hostile},
        hard_queries=hard,
        query_kinds=kinds,
        query_kinds_note="Another property is left out: nobody measured it." + hostile,
        drill_down={
            query: [
                RankedDocument(
                    "d1" + hostile, "A treaty" + hostile, 2, 7, 1, [("IDF" + hostile, 0.8)]
                ),
                RankedDocument("d2", "A river", None, None, 3, [("BM25 body", 0.4), ("IDF", 0.1)]),
                RankedDocument("d3", "A comet", 1, 2, 9),
            ]
            for query in ids[:3]
        },
        precision_recall=pd.DataFrame(
            {"recall": LEVELS, pairs[0][1]: 0.6 - 0.5 * LEVELS, pairs[0][0]: 0.7 - 0.5 * LEVELS}
        ),
        precision_recall_note="All documents are judged." + hostile,
        learning_curve=learning_curve(
            [(20.0 * i, {s.name: [s.per_query] for s in systems}) for i in (1, 2, 3)],
            pairs[:2],
            "NDCG@10",
            test,
            untrained={},
            groups=groups,
        ),
        column_value=pd.DataFrame(
            {
                "group": ["links" + hostile, "links"],
                "kind": ["left out", "shuffled"],
                "with": 0.5,
                "without": [0.48, 0.47],
                "value": [0.02, 0.03],
                "low": [0.01, np.nan],
                "high": [0.03, np.nan],
                "p": [0.01, np.nan],
                "p_corrected": [0.02, np.nan],
                "significant": [True, False],
            }
        ),
        column_value_of=systems[3].name,
        column_correlation=pd.DataFrame(
            np.corrcoef(rng.normal(size=(len(columns), 20)) + rng.normal(size=20)), columns, columns
        ),
        hard_measure="NDCG@20",
        hard_baseline=baseline.name,
        hard_control="Word counts with a third seed" + hostile,
        test=test,
        remarks=[f"{int((difficulty == 0).sum())} queries have no relevant candidate" + hostile],
    )
