"""A small study of each kind but "ranking": its data, and its file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
from beir_folders import with_ids, write_beir

N_ARTICLES, N_TOPICS, N_PAIRS = 60, 4, 80

LETOR = """
kind = "letor"
title = "Toy"
folder = "toy"
baseline = "Boosted steps"
compare_measures = ["MAP"]
n_permutations = 100

[measures]
"NDCG@5" = "ndcg@5"
MAP = "letor4:map"

[[schemes]]
name = "official"
official = true

[[schemes]]
name = "three"
k = 3
seed = 1

[[rankers]]
label = "Boosted steps"
ranker = "rankboost"
params = { n_rounds = 10, measure = "map" }
grid = { n_thresholds = [2, 20] }

[[rankers]]
label = "AdaRank"
ranker = "adarank"
grid = {}

[[references]]
scheme = "three"
label = "Elsewhere & else"
values = { MAP = 0.123 }

[[expected]]
scheme = "official"
ranker = "AdaRank"
measure = "MAP"
value = 2.0
tolerance = 0.1
"""

CLICKTHROUGH = """
kind = "clickthrough"
title = "Small"
introduction = "Two topics."
cutoffs = [1, 3]
lambda1 = [0.1, 0.5]
lambda2 = [0.0, 0.5]
weights = [0.0, 0.5, 1.0]
[tasks.small]
folder = "small"
train = "train"
[[tables]]
name = "one"
title = "All"
task = "small"
evaluations = ["PR"]
expectations = [["UM", "<=", "PR mixed"], ["UM", "~", "PR"]]
[[tables.rows]]
label = "UM"
model = "unigram"
paper = [0.3, 0.4]
[[tables.rows]]
label = "PR"
model = "bltm-pr"
params = { n_topics = 2, iterations = 3 }
[[tables.rows]]
label = "PR mixed"
model = "bltm-pr"
params = { n_topics = 2, iterations = 3 }
mixed = true
[[tables.rows]]
label = "LSA + VSM"
model = "lsa"
params = { rank = 2 }
mixed = true
"""

MATCHING = """
kind = "matching"
title = "Small <experiment>"
introduction = "Generated articles."
notes = ["A finding."]
[settings]
rank = 4
max_epochs = 2
hold_out = "pairs"
[choose]
learning_rate = [0.03, 0.3]
[tasks.links]
source = "links"
folder = "articles"
n_triples = 300
[tasks.mates]
source = "pairs"
folder = "sentences"
[[tables]]
name = "one"
title = "One"
task = "links"
order = [["TFIDF", "SSI"]]
[[tables.rows]]
label = "TFIDF"
model = "vsm"
paper = { rank_loss = 1.62, map = 0.329, map_error = 0.01, p10 = 0.163 }
[[tables.rows]]
label = "SSI"
model = "ssi"
note = "A remark."
[[tables.rows]]
label = "In the paper only"
paper = { map = 0.614 }
[[tables]]
name = "two"
title = "Two"
task = "mates"
[[tables.rows]]
label = "TFIDF of links"
model = "vsm"
task = "links"
[[tables.rows]]
label = "CL-LSI"
model = "cl-lsa"
params = { vocabularies = "separate", rank = 5 }
[[tables.rows]]
label = "SSI of two languages"
model = "cross-language"
params = { hold_out = "queries" }
[scatter]
table = "one"
model = "SSI"
against = ["TFIDF"]
[curves]
task = "links"
model = "ssi"
shares = [0.5, 1.0]
ranks = [2]
epochs = 2
n_queries = 10
"""

COMPARE = """
kind = "compare"
runs = ["good.run", "bad.run"]
qrels = "qrels.txt"
groups = "groups.tsv"
[test]
n_permutations = 100
n_resamples = 100
"""


CLICKS = """
kind = "clicks"
title = "Small clicks"
folder = "toy"
sessions = [100, 400]
repeats = 2
asked = 500
n_resamples = 200
expected = [{ sessions = 400, closed = 0.5 }]
[production]
share = 0.5
trees = 3
[users]
depth = 6
"""


def write_letor(folder: Path) -> str:
    """Four parts of LETOR files."""
    rng = np.random.default_rng(0)
    (folder / "toy").mkdir(parents=True)
    for part in range(1, 5):
        lines = []
        for query in range(6):
            for _ in range(8):
                x = rng.random(3)
                label = int(3 * np.clip(x[1] + 0.2 * rng.normal(), 0, 0.99))
                values = " ".join(f"{j + 1}:{value:.4f}" for j, value in enumerate(x))
                lines.append(f"{label} qid:{10 * part + query} {values}\n")
        (folder / "toy" / f"S{part}.txt").write_text("".join(lines))
    return LETOR


def write_clickthrough(folder: Path) -> str:
    """Titles of two topics whose queries use other words."""
    rng = np.random.default_rng(0)
    folder = folder / "small"
    titles = [" ".join(f"t{i % 2}w{j}" for j in rng.integers(0, 9, 5)) for i in range(40)]
    queries = [" ".join(f"q{i % 2}w{j}" for j in rng.integers(0, 5, 3)) for i in range(30)]
    queries = [f"{text} t{i % 2}w1" for i, text in enumerate(queries)]
    judged = {
        split: "".join(
            f"queries{i}\tcorpus{2 * d + i % 2}\t{1 + d % 2}\n"
            for i in rows
            for d in rng.choice(20, 4, replace=False)
        )
        for split, rows in (("train", range(18)), ("test", range(18, 30)))
    }
    documents = ({"_id": f"corpus{i}", "title": t, "text": "x"} for i, t in enumerate(titles))
    asked = with_ids({f"queries{i}": text for i, text in enumerate(queries)})
    write_beir(folder, documents, asked, **judged)
    return CLICKTHROUGH


def write_matching(folder: Path) -> str:
    """Linked articles on topics (links within topics), and sentences in two languages."""
    rng = np.random.default_rng(0)
    _write_articles(folder / "articles", rng)
    _write_sentences(folder / "sentences", rng)
    return MATCHING


def _write_articles(folder: Path, rng: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    topic = np.arange(N_ARTICLES) % N_TOPICS
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for i in range(N_ARTICLES):
            words = [f"t{topic[i]}w{w}" for w in rng.integers(25, size=20)]
            words += [f"common{w}" for w in rng.integers(10, size=10)]
            file.write(json.dumps({"_id": f"A{i}", "text": " ".join(words)}) + "\n")
    with (folder / "links.tsv").open("w", encoding="utf-8") as file:
        for i in range(N_ARTICLES):
            others = np.flatnonzero((topic == topic[i]) & (np.arange(N_ARTICLES) != i))
            for j in rng.choice(others, 6, replace=False):
                file.write(f"A{i}\tA{j}\n")
        file.write("A0\tA0\n")


def _write_sentences(folder: Path, rng: np.random.Generator) -> None:
    folder.mkdir()
    for part, n in (("train", N_PAIRS), ("dev", 5), ("test", 20)):
        words = [rng.integers(30, size=6) for _ in range(n)]
        for language, stem in (("ja", "語"), ("en", "word")):
            lines = (" ".join(f"{stem}{w}" for w in row) for row in words)
            (folder / f"{part}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_clicks(folder: Path) -> str:
    """The files of :func:`write_letor`."""
    write_letor(folder)
    return CLICKS


def write_compare(folder: Path) -> str:
    """Two runs of twelve queries, judgements and groups."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    judged = [(f"q{i}", f"d{j}", int(j < 2)) for i in range(12) for j in range(8)]
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} {y}\n" for q, d, y in judged))
    for name, weight in (("good", 1.0), ("bad", 0.2)):
        lines = [f"{q} Q0 {d} 1 {weight * y + rng.random():.4f} t\n" for q, d, y in judged]
        (folder / f"{name}.run").write_text("".join(lines))
    (folder / "groups.tsv").write_text("".join(f"q{i}\tg{i // 2}\n" for i in range(12)))
    return COMPARE


WRITERS = {
    "letor": write_letor,
    "clicks": write_clicks,
    "clickthrough": write_clickthrough,
    "matching": write_matching,
    "compare": write_compare,
}
