"""Clickthrough experiments: their files, the ranking of test queries, tables and resumption."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from folders import unwrapped
from scipy.stats import permutation_test
from scipy.stats import t as t_distribution
from small_studies import CLICKTHROUGH, write_clickthrough

from letor.errors import InputError
from letor.evaluation import evaluate
from ltr_features.studies.kinds import clickthrough, clickthrough_ranking
from ltr_features.studies.kinds.clickthrough_config import TaskConfig
from ltr_features.studies.kinds.clickthrough_ranking import NDCG
from ltr_features.studies.kinds.clickthrough_report import ClickthroughResults, checks, outcome_of
from ltr_features.studies.kinds.clickthrough_tasks import make_task
from ltr_features.studies.kinds.task_tables import Fit, Row
from ltr_features.studies.run import run_file


@pytest.fixture
def data(tmp_path):
    """A folder with the study's file and its data."""
    (tmp_path / "x.toml").write_text(write_clickthrough(tmp_path / "data"))
    return tmp_path


def run_it(data, out="out"):
    return run_file(data / "x.toml", data=data / "data", out=data / out, threads=1)


def test_the_report_has_every_row_and_expectation(data):
    folder = run_it(data)
    rows = pd.read_csv(folder / "rows.csv")
    assert list(rows["label"]) == ["UM", "PR", "PR mixed", "LSA + VSM"]
    assert rows["NDCG@3"].between(0, 1).all()
    text = (folder / "tables.txt").read_text()
    assert "UM <= PR mixed: " in text
    assert "PR, function and gradient evaluations by iteration: " in text
    verdict = (folder / "verdict.txt").read_text()
    assert "Expectations met: 0 of 2 (2 more not contradicted)." in verdict
    assert text.count("≈ UM ") == 2  # that no difference is found shows no equality
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "0.400" in page


def test_test_queries_of_one_group_are_tested_together(data):
    lines = [f"queries{i}\tperson {i // 4}\n" for i in range(18, 30)]
    (data / "data" / "people.tsv").write_text("".join(lines))
    text = CLICKTHROUGH.replace('train = "train"', 'train = "train"\ngroups = "people.tsv"')
    (data / "x.toml").write_text(text)
    folder = run_it(data)
    text = unwrapped(folder / "tables.txt")
    assert "groups of test queries: 4" in text
    assert len(re.findall(r"design effect [0-9.]+", text)) == 2
    values = [
        pd.read_csv(path).set_index("query")["NDCG@3"]
        for path in sorted((data / "out" / "rows" / "small").glob("*/per_query.csv"))
        if path.parent.name.startswith(("unigram", "bltm")) and "mixed" not in path.parent.name
    ]
    d = values[0] - values[1]
    sums = d.groupby([int(q[7:]) // 4 for q in d.index]).sum()  # the mean query, as is printed
    flipped = [abs(np.dot(signs, sums)) for signs in product((-1, 1), repeat=len(sums))]
    p = np.mean(np.array(flipped) >= abs(sums.sum()) - 1e-9)
    assert f"p = {p:.2f}" in text.split("UM ~ PR: ")[1]
    (data / "data" / "people.tsv").write_text(lines[0])
    with pytest.raises(InputError, match="no group of 11 queries"):
        run_it(data, "again")
    assert not list((data / "again").rglob("fit.json"))


def test_queries_of_one_group_are_on_the_same_side_of_every_split(data):
    """Of training and testing, and of the halves on which mixtures are tuned for each other."""
    people = {f"queries{i}": f"person {i // 4}" for i in range(18, 30)}
    lines = "".join(f"{query}\t{person}\n" for query, person in people.items())
    (data / "data" / "people.tsv").write_text(lines)
    [folder] = [path.name for path in (data / "data").iterdir() if path.is_dir()]
    config = {"folder": folder, "train_share": 0.4, "groups": "people.tsv"}
    for seed in range(5):
        task = make_task(TaskConfig(**config, seed=seed), data / "data")
        person = np.array([people[query] for query in task.query_ids])
        halves = [set(person[task.half == n].tolist()) for n in (0, 1)]
        assert not halves[0] & halves[1]
        asked = halves[0] | halves[1]
        assert len(task.query_ids) == sum(one in asked for one in people.values())
        assert task.Q.shape[0] == len(people) - len(task.query_ids) > 0
        # Nor do models hold out a part of a group.
        left = Counter(one for one in people.values() if one not in asked)
        assert sorted(Counter(task.train_group.tolist()).values()) == sorted(left.values())
    (data / "data" / "people.tsv").write_text("".join(f"{query}\tone\n" for query in people))
    with pytest.raises(InputError, match="12 training queries and 0 groups of test queries"):
        make_task(TaskConfig(**{**config, "train_share": 0.6}), data / "data")


def test_groups_of_given_training_queries_are_held_out_together_and_told_if_tested(data):
    people = {f"queries{i}": f"person {i // 4}" for i in range(30)}  # person 4 is in both parts
    lines = "".join(f"{query}\t{person}\n" for query, person in people.items())
    (data / "data" / "people.tsv").write_text(lines)
    config = TaskConfig(folder="small", train="train", groups="people.tsv")
    assert Counter(Counter(make_task(config, data / "data").train_group.tolist()).values()) == {
        4: 4, 2: 1,
    }  # fmt: skip
    text = CLICKTHROUGH.replace('train = "train"', 'train = "train"\ngroups = "people.tsv"')
    (data / "x.toml").write_text(text)
    told = "2 of 12 test queries belong to a group that was also trained on; unless they were asked"
    assert f"Task 'small': {told} later, leave train out" in verdict(data)


def test_queries_are_dealt_by_their_number_in_groups_of_any_size(data):
    """Half of twelve, of which six are one group and six alone: half of the seven would be nine
    queries for most seeds."""
    lines = [f"queries{i}\t{'many' if i < 24 else i}\n" for i in range(18, 30)]
    (data / "data" / "people.tsv").write_text("".join(lines))
    for seed in range(10):
        config = TaskConfig(folder="small", groups="people.tsv", seed=seed)
        assert 3 <= make_task(config, data / "data").Q.shape[0] <= 8


def test_too_few_test_queries_are_told(data):
    """Four groups give p = 2 / 2^4 at best."""
    lines = [f"queries{i}\tperson {i // 4}\n" for i in range(18, 30)]
    (data / "data" / "people.tsv").write_text("".join(lines))
    told = "no claim could have been significant: 4 test queries (or groups of them)"
    assert told not in unwrapped(run_it(data) / "tables.txt")
    text = CLICKTHROUGH.replace('train = "train"', 'train = "train"\ngroups = "people.tsv"')
    (data / "x.toml").write_text(text)
    assert told in unwrapped(run_it(data) / "tables.txt")


def rewrite(path, change):
    """Change every object of a file of JSON lines."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    text = "".join(json.dumps(change(line)) + "\n" for line in lines)
    path.write_text(text)


def test_queries_of_one_text_are_dealt_and_tested_together(data):
    """Under other ids, too: else a model would be tested on what it was taught."""

    def repeated(line):
        return line | {"text": f"t0w1 word{int(line['_id'].removeprefix('queries')) % 6}"}

    rewrite(data / "data" / "small" / "queries.jsonl", repeated)
    for seed in range(5):
        task = make_task(TaskConfig(folder="small", seed=seed), data / "data")
        texts = [int(query.removeprefix("queries")) % 6 for query in task.query_ids]
        assert 0 < len(texts) < 12
        assert not task.taught.any()
        assert not {*np.array(texts)[task.half == 0]} & {*np.array(texts)[task.half == 1]}
        assert len({*zip(texts, task.group.tolist(), strict=True)}) == len({*texts})
    text = unwrapped(run_it(data) / "tables.txt")
    assert "groups of test queries: 6" in text


def test_training_queries_of_one_text_are_held_out_together(data, monkeypatch):
    given = []

    class Recording(clickthrough.get_model("lsa")):
        def fit(self, *matrices, groups=None, **options):
            given.append(groups)
            return super().fit(*matrices, **options)

    def repeated(line):
        n = int(line["_id"].removeprefix("queries"))
        return line | {"text": f"t0w1 word{n // 2 if n < 18 else n}"}

    rewrite(data / "data" / "small" / "queries.jsonl", repeated)
    text = CLICKTHROUGH.split("[[tables.rows]]")[0].replace('evaluations = ["PR"]\n', "")
    rows = '[[tables.rows]]\nlabel = "LSA"\nmodel = "lsa"\nparams = { rank = 2 }\n'
    (data / "x.toml").write_text(re.sub("(expectations|lambda.|weights) = .*\n", "", text) + rows)
    monkeypatch.setattr(clickthrough, "get_model", lambda name: Recording)
    run_it(data)
    [groups] = given
    same = np.equal.outer(groups, groups)
    np.testing.assert_array_equal(same, np.equal.outer(np.arange(18) // 2, np.arange(18) // 2))


def verdict(data):
    return unwrapped(run_it(data) / "verdict.txt")


def test_the_verdict_warns_of_test_queries_that_were_taught(data):
    def numbered(line):
        return line | {"text": f"{line['text']} word{line['_id']}"}

    def repeated(line):
        n = int(line["_id"].removeprefix("queries"))
        return line | ({"text": f"T0w1  Word{n % 18} "} if n % 18 < 3 else {})

    rewrite(data / "data" / "small" / "queries.jsonl", numbered)
    assert "Task" not in verdict(data)
    rewrite(data / "data" / "small" / "queries.jsonl", repeated)
    told = verdict(data)
    assert told.startswith("Expectations met: ")  # the answer first
    assert (
        "Task 'small': 3 of 12 test queries have the text of a training query, so that models may "
        "only repeat what they were taught"
    ) in told


def test_japanese_is_matched_by_pairs_of_characters(data):
    """Without them a text is one long word; the verdict says so."""

    def japanese(line):
        marks = [chr(ord("一") + ord(c)) for c in line.get("title", line["text"]) if c != " "]
        return line | {"title" if "title" in line else "text": "".join(marks)}

    for name in ("corpus", "queries"):
        rewrite(data / "data" / "small" / f"{name}.jsonl", japanese)
    warning = "test queries have no word that a title or training query has"
    assert warning in verdict(data)
    text = CLICKTHROUGH.replace('train = "train"', 'train = "train"\ncjk_bigrams = true')
    (data / "x.toml").write_text(text)
    assert warning not in verdict(data)
    task = make_task(TaskConfig(folder="small", train="train", cjk_bigrams=True), data / "data")
    assert all(len(word) == 2 for word in task.vocabulary)


def test_misspelled_queries_are_matched_by_letter_trigrams(data):
    """Each test query is a title with an error in every word."""

    def misspelled(line):
        n = int(line["_id"].removeprefix("queries"))
        return line | {"text": f"distrubution nubmer{n}" if n >= 18 else "some other query"}

    def numbered(line):
        return line | {"title": f"distribution number{line['_id'].removeprefix('corpus')}"}

    rewrite(data / "data" / "small" / "queries.jsonl", misspelled)
    rewrite(data / "data" / "small" / "corpus.jsonl", numbered)
    assert "12 of 12 test queries have no word" in verdict(data)
    text = CLICKTHROUGH.replace('train = "train"', 'train = "train"\nterms = "letter-trigrams"')
    (data / "x.toml").write_text(text)
    folder = run_it(data)
    assert "Task" not in verdict(data)
    assert "letter-trigrams per title" in (folder / "tables.txt").read_text()
    task = make_task(
        TaskConfig(folder="small", train="train", terms="letter-trigrams"), data / "data"
    )
    title = dict(zip(task.vocabulary, task.D[0].toarray().ravel(), strict=True))
    assert (title["#di"], title["on#"], title["num"]) == (1, 1, 1)
    assert task.D[0].sum() == len("distribution") + len("number0")
    shared = {"#di", "dis", "ist", "but", "uti", "tio", "ion", "on#"}  # of both spellings
    asked = dict(zip(task.vocabulary, task.T[0].toarray().ravel(), strict=True))
    assert shared < {term for term, n in asked.items() if n}


def test_refits_have_other_seeds_and_their_spread_stands_beside_the_means(data):
    """The unigram model learns from no judgement and is fitted once; expectations are tested with
    the variance over fits too, by the formulas of Welch and Satterthwaite."""
    run_it(data)
    once = {path.name for path in (data / "out" / "rows" / "small").iterdir()}
    (data / "x.toml").write_text(
        CLICKTHROUGH.replace("[tasks.small]", "repeats = 3\n[tasks.small]")
    )
    folder = run_it(data)
    paths = sorted((data / "out" / "rows" / "small").iterdir())
    assert once < {path.name for path in paths}
    values = {
        path.name: pd.read_csv(path / "per_query.csv").set_index("query")["NDCG@3"]
        for path in paths
    }
    base = next(v for name, v in values.items() if name.startswith("unigram"))
    fits = [v for name, v in values.items() if re.fullmatch("bltm-pr-[0-9a-f]+", name)]
    assert len(fits) == 3
    means = [v.mean() for v in fits]
    rows = pd.read_csv(folder / "rows.csv").set_index("label")
    assert rows["fits"].to_dict() == {"UM": 1, "PR": 3, "PR mixed": 3, "LSA + VSM": 1}
    assert rows.loc["PR", "NDCG@3"] == pytest.approx(np.mean(means))
    assert rows.loc["PR", "NDCG@3 spread"] == pytest.approx(np.std(means, ddof=1))
    d = np.mean(fits, axis=0) - base
    of_queries, of_fits = d.var(ddof=1) / len(d), np.var(means, ddof=1) / 3
    total = of_queries + of_fits
    freedom = total**2 / (of_queries**2 / (len(d) - 1) + of_fits**2 / 2)
    p = 2 * t_distribution.sf(abs(d.mean()) / np.sqrt(total), freedom)
    p = max(p, permutation_test((d,), np.sum, permutation_type="samples").pvalue)
    text = unwrapped(folder / "tables.txt")
    assert f"p = {p:.2f}" in text.split("UM ~ PR: ")[1].split("NDCG@1")[0]
    shown = f"{rows.loc['PR', 'NDCG@3']:.3f} ({rows.loc['PR', 'NDCG@3 spread']:.3f})"
    assert shown in text
    assert "Means over the test queries; in brackets, their spread over 3 fits" in text
    assert shown in (folder / "report.html").read_text()


def test_a_model_is_fitted_once_and_stages_are_reused(data, monkeypatch):
    fitted = []
    kept = clickthrough.get_model

    def counting(name):
        fitted.append(name)
        return kept(name)

    monkeypatch.setattr(clickthrough, "get_model", counting)
    first = (run_it(data) / "tables.txt").read_bytes()
    assert fitted == ["unigram", "bltm-pr", "lsa"]
    assert (run_it(data) / "tables.txt").read_bytes() == first
    assert len(fitted) == 3


def test_files_may_be_moved(data, capsys):
    """They are known by name and content; queries made from the documents of their ids are a
    choice."""
    toml = data / "x.toml"
    queries = (data / "data/small/queries.jsonl").read_text().splitlines()
    groups = "".join(f"{json.loads(line)['_id']}\tg{i // 2}\n" for i, line in enumerate(queries))
    (data / "data/groups.tsv").write_text(groups)
    toml.write_text(toml.read_text().replace("[[tables]]", 'groups = "groups.tsv"\n[[tables]]', 1))
    run_it(data)
    (data / "data/below").mkdir()
    for name in ("small", "groups.tsv"):
        (data / "data" / name).rename(data / "data/below" / name)
    moved = toml.read_text().replace('"small"', '"./below/small"', 1)
    toml.write_text(moved.replace('"groups.tsv"', '"below/groups.tsv"'))
    run_file(toml, data=data / "data", out=data / "out", dry_run=True)
    assert " 0 to do" in capsys.readouterr().out
    toml.write_text(toml.read_text().replace("groups =", 'sources = "same-id"\ngroups ='))
    run_file(toml, data=data / "data", out=data / "out", dry_run=True)
    assert "to do: changed" in capsys.readouterr().out


def test_queries_may_be_ranked_some_at_a_time(data, monkeypatch):
    once = run_it(data)
    monkeypatch.setattr(clickthrough_ranking, "_PAIRS", 50)
    again = run_it(data, "again")
    assert (again / "rows.csv").read_bytes() == (once / "rows.csv").read_bytes()


def test_ndcg_equals_that_of_the_measures():
    rng = np.random.default_rng(1)
    query, document = np.divmod(rng.choice(5 * 30, 40, replace=False), 30)
    grade = rng.integers(1, 4, 40)
    scores = rng.integers(0, 6, (5, 30)).astype(float)  # with many ties
    ours = NDCG(5, 30, query, document, grade, (1, 3, 10)).all(scores)
    names = np.array([f"{d:02}" for d in range(30)])
    qrels = pd.DataFrame({"qid": query.astype(str), "docno": names[document], "label": grade})
    every = np.repeat(np.arange(5), 30), np.tile(np.arange(30), 5)
    ranking = pd.DataFrame(
        {"qid": every[0].astype(str), "docno": names[every[1]], "score": scores.ravel()}
    )
    expected = evaluate(qrels, ranking, ["NDCG@1", "NDCG@3", "NDCG@10"])
    for name, values in expected.iterrows():
        np.testing.assert_allclose(ours[int(name)], values, atol=1e-12)


def test_expectations_are_told_by_each_measure_and_the_last_one_decides():
    """In NDCG@3 "high" is 0.2 above "low" for all 12 queries: p is 2 of 4,096 patterns, times the
    three expectations that are tested."""
    rows = {
        ("t", label): Row(
            [Fit(pd.DataFrame({"NDCG@1": 0.5, "NDCG@3": mean}, index=range(12)), {}, {})]
        )
        for label, mean in (("low", 0.4), ("same", 0.4), ("high", 0.6))
    }
    config = SimpleNamespace(measures=["NDCG@1", "NDCG@3"], alpha=0.05)
    expected = [("low", "<", "high"), ("low", "~", "same"), ("high", "<=", "low")]
    table = SimpleNamespace(
        name="t", task="x", expectations=expected,
        rows=[SimpleNamespace(label=label) for _, label in rows],
    )  # fmt: skip
    alike = "NDCG@1 0.0000, p = 1.00 (corrected 1.00)"
    assert checks(ClickthroughResults(config, rows, {}), table) == [
        ("✓", f"low < high: held (NDCG@3 +0.2000, p = 0.0005 (corrected 0.001); {alike})"),
        ("≈", f"low ~ same: not contradicted (NDCG@3 0.0000, p = 1.00 (corrected 1.00); {alike})"),
        (
            "✗",
            "high <= low: not held: the opposite is significant (NDCG@3 −0.2000, p = 0.0005 "
            f"(corrected 0.001); {alike})",
        ),
    ]


@pytest.mark.parametrize(
    ("relation", "difference", "p", "outcome"),
    [
        ("<", 0.1, 0.01, "held"),
        ("<", 0.1, 0.2, "not held: better, not significantly"),
        ("<", -0.1, 0.2, "not held: not better"),
        ("<", -0.1, 0.01, "not held: the opposite is significant"),
        ("<=", -0.1, 0.2, "not contradicted"),
        ("<=", 0.1, 0.01, "held"),
        ("<=", -0.1, 0.01, "not held: the opposite is significant"),
        ("~", 0.1, 0.2, "not contradicted"),
        ("~", -0.1, 0.01, "not held: they differ"),
    ],
)
def test_outcomes_of_expectations(relation, difference, p, outcome):
    assert outcome_of(relation, difference, p, 0.05) == outcome
