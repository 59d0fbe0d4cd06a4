"""The kind "clicks": what its report says of simulated clicks."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from folders import unwrapped
from scipy.stats import sem, t
from small_studies import CLICKS, write_clicks

from letor.errors import InputError
from ltr_features.clicks.judging import ClickJudgements
from ltr_features.clicks.position_models import PositionBased
from ltr_features.clicks.simulation import Simulation
from ltr_features.sample import write_sample
from ltr_features.studies.identity import Digests
from ltr_features.studies.kinds.clicks import ClicksStudy
from ltr_features.studies.kinds.clicks_config import ClicksConfig
from ltr_features.studies.kinds.clicks_learners import (
    Learned,
    Learner,
    MatchingLearners,
)
from ltr_features.studies.kinds.clicks_report import Results, checks, document
from ltr_features.studies.run import run_file

MATCHING = """
kind = "clicks"
title = "T"
sessions = [100, 2000]
asked = 500
n_resamples = 200
[users]
noise = 0.0
depth = 6
[matching]
collection = { source = "beir", folder = "beir" }
depth = 12
tested = 2
[[matching.models]]
name = "ssi"
model = "ssi"
params = { rank = 4, max_epochs = 2 }
[[matching.models]]
name = "words and topics"
model = "wtm"
"""


def results(raw, debiased, true, groups=None, facts=(), **config):
    """Of one size of log: the values of test queries by fit, and facts on the clicks."""
    settings = {"kind": "clicks", "title": "T", "folder": "f", "sessions": [100], **config}
    fits = [
        pd.DataFrame(
            {"raw 100": r, "debiased 100": d, "true labels": t, "in production": r}
        ).rename_axis("qid")
        for r, d, t in zip(raw, debiased, true, strict=True)
    ]
    described = ClicksConfig.model_validate(settings)
    return Results(described, fits, facts, "a ranker", "another", groups)


#: What is noted of the clicks on a fold.
ON_CLICKS = {
    "fit": 0, "sessions": 100, "logged": 0.5, "estimate": 0.6, "low": 0.55, "high": 0.65,
    "never shown": 0.1, "most": 0.9, "thin queries": 1, "queries": 4, "remarks": {},
    "positions": [{"position": 1, "click_rate": 0.4, "examination": 1.0}],
    "labels": [{"label": 2, "pairs": 1200, "click_rate": 0.1, "relevance": 0.3}],
}  # fmt: skip


def test_the_share_of_the_gap_is_that_of_means():
    """By hand: raw .2, debiased .5, true .6 on average over two fits and eight queries."""
    raw = [np.tile([0.1, 0.3], 4)] * 2
    debiased = [np.tile([0.4, 0.6], 4), np.full(8, 0.5)]
    true = [np.tile([0.5, 0.7], 4)] * 2
    row = results(raw, debiased, true).gaps.iloc[0]
    assert [row[n] for n in ("raw", "debiased", "true")] == pytest.approx([0.2, 0.5, 0.6])
    assert [row[n] for n in ("gap", "gain", "closed")] == pytest.approx([0.4, 0.3, 0.75])
    # The gap is the same in every query, so that no draw of queries changes it.
    assert (row["gap_low"], row["gap_high"]) == pytest.approx((0.4, 0.4))
    assert row["closed_low"] < 0.75 < row["closed_high"]


def test_intervals_include_the_variance_over_simulations():
    """The same gain in every query, and more or less of it by luck of the simulation: as a
    t-interval over three simulations says, and the same in both tables."""
    level = np.linspace(0.1, 0.3, 40)
    raw, gains = [level] * 3, np.array([0.1, 0.2, 0.3])
    found = results(raw, [level + gain for gain in gains], [level + 0.4] * 3)
    row = found.gaps.iloc[0]
    half = t.ppf(0.975, 2) * sem(gains)
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((0.2 - half, 0.2 + half))
    assert (row["closed_low"], row["closed_high"]) == pytest.approx(
        ((0.2 - half) / 0.4, (0.2 + half) / 0.4)
    )
    assert found.comparisons["low"].item() == pytest.approx(row["gain_low"])


@pytest.mark.parametrize(("closed", "sign"), [(0.3, "✓"), (0.7, "(✓)"), (0.8, "≈"), (0.99, "✗")])
def test_an_expected_share_holds_if_its_interval_does(closed, sign):
    level = np.linspace(0.1, 0.3, 60)
    gain = 0.3 + 0.3 * np.random.default_rng(1).uniform(-1, 1, 60)
    expected = [{"sessions": 100, "closed": closed}]
    found = results([level], [level + gain], [level + 0.4], expected=expected)
    row = found.gaps.iloc[0]
    assert 0.3 < row["closed_low"] < 0.7 < row["closed"] < 0.8 < row["closed_high"] < 0.99
    [(said, text)] = checks(found)
    assert said == sign
    assert text.endswith(
        f"{row['closed']:.0%} ({row['closed_low']:.0%} to {row['closed_high']:.0%})"
    )


def test_negative_shares_have_the_minus_of_other_numbers_and_zero_has_none():
    """By hand: debiased clicks close -.001 / .4 of the gap on average."""
    raw, true = [np.full(8, 0.2)], [np.full(8, 0.6)]
    debiased = [0.199 + np.tile([-0.1, 0.1], 4)]
    found = results(raw, debiased, true, expected=[{"sessions": 100, "closed": 0.5}])
    [(_, text)] = checks(found)
    assert re.search(r"is closed: 0% \(−\d+% to \d+%\)$", text)


def test_without_a_gap_no_share_of_it_is_closed():
    level = np.linspace(0.1, 0.3, 10)
    row = results([level], [level + 0.1], [level]).gaps.iloc[0]
    assert np.isnan([row["closed"], row["closed_low"], row["closed_high"]]).all()


def test_tables_show_gaps_click_rates_and_estimates_under_their_headings():
    """Raw .2, debiased .5, true .6 in every query; two folds, of which one's actual clicks are in
    the interval, and the other's above it, where clicks on unseen results may explain them."""
    facts = [ON_CLICKS | {"fold": 1, "asked": 0.6}, ON_CLICKS | {"fold": 2, "asked": 0.7}]
    level = np.full(8, 0.2)
    found = document([results([level], [level + 0.3], [level + 0.4], facts=facts)])
    tables = {table.name: table for section in found.sections for table in section.tables}
    shown = {
        name: [dict(zip([head.title for head in table.headings], row, strict=True))
               for row in table.rows]
        for name, table in tables.items()
    }  # fmt: skip
    assert shown == {
        "Results by number of sessions": [
            {
                "Sessions": "100", "Raw": "0.2000", "Debiased": "0.5000", "True labels": "0.6000",
                "Gap": "+0.4000 (+0.4000 to +0.4000)", "Gain": "+0.3000 (+0.3000 to +0.3000)",
                "Corrected p": "0.008",  # 2 of 256 patterns of signs
                "Closed": "75% (75% to 75%)",
            }
        ],
        "Clicks by true label": [
            {
                "Label": "100 sessions, label 2", "Pairs": "1,200", "Click rate": "0.1000",
                "Debiased": "0.3000", "Thin": "25%",
            }
        ],
        "Clicks per page, a ranker": [
            {
                "Sessions": "100", "In the log": "0.5000", "Estimated": "0.6000",
                "Actual": "0.6500", "Never shown": "10.0%", "Within": "1 of 2",
                "Possible": "2 of 2",
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("users", "told"),
    [
        ({"model": "pbm", "eta": 2.0}, "pbm, eta 2, noise 0.1, 10 results"),
        ({"model": "cascade"}, "cascade, noise 0.1, 10 results"),
        ({"model": "dcm", "continuation": 0.2}, "dcm, noise 0.1, continuation 0.2, 10 results"),
    ],
)
def test_users_are_described_by_the_parameters_of_their_model(users, told):
    level = np.full(8, 0.2)
    facts = [ON_CLICKS | {"fold": 1, "asked": 0.6}]
    given = results([level], [level + 0.3], [level + 0.4], facts=facts, users=users)
    found = document([given])
    assert f"Users: {told} per page" in found.sections[0].facts


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clicks")
    toml = folder / "x.toml"
    text = write_clicks(folder / "data").replace("repeats = 2", "repeats = 2\nseed = 1")
    toml.write_text(text, encoding="utf-8")
    return run_file(toml, data=folder / "data", out=folder / "out")


def test_users_look_as_they_are_said_to(report):
    """The position-based model finds 1 / rank, in every fold, from logs of 400 pages."""
    stages = sorted(report.parent.glob("simulations/*/*/*/clicks.json"))
    assert len(stages) == 2 * 4
    found = [json.loads(path.read_text())[-1] for path in stages]
    examination = np.mean([[row["examination"] for row in one["positions"]] for one in found], 0)
    np.testing.assert_allclose(examination, 1 / np.arange(1, 7), atol=0.12)
    better = [{row["label"]: row["relevance"] for row in one["labels"]} for one in found]
    assert all(one[2] > one[0] for one in better)


def test_estimates_are_compared_with_what_users_do(report):
    table = pd.read_csv(report / "estimates.csv")
    assert len(table) == 2 * 4 * 2
    many = table[table["sessions"] == 400]
    assert many["within"].mean() >= 0.5
    assert (many["high"] - many["low"]).mean() < (
        table[table["sessions"] == 100]["high"] - table[table["sessions"] == 100]["low"]
    ).mean()
    assert many["estimate"].mean() == pytest.approx(many["asked"].mean(), rel=0.2)


def test_a_gap_that_may_be_0_is_neither_denied_nor_shared_out(report):
    text = unwrapped(report / "tables.txt")
    gap = r"the gap, \+0\.\d+ \(−0\.\d+ to \+0\.\d+\), may be 0"
    assert re.search(rf"at least 50% of the gap is closed: {gap}", text)
    assert re.search(r"400 0\.\d+ 0\.\d+ 0\.\d+ \+\S+ \(.*?\) \S+ \(.*?\) \S+ –", text)
    assert re.search(f"unknown, as {gap}", (report / "verdict.txt").read_text().replace("\n", " "))


def test_the_report_tells_the_expectation(report):
    text = (report / "tables.txt").read_text(encoding="utf-8")
    assert "at 400 sessions at least 50% of the gap is closed" in text
    assert "24 test queries; simulations: 2" in text
    assert "by number of sessions" in text.lower()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (CLICKS, "[100, 400]", "[400, 100]", "sessions must ascend"),
        (CLICKS, "sessions = 400", "sessions = 7", "7 is not among the sessions"),
        (CLICKS, "[users]", "[users]\nmodel = 'crowd'", "users must be 'pbm' or"),
        (CLICKS, "kind =", "measure = 'mapp'\nkind =", "measure: measure 'mapp' is unknown"),
        (
            MATCHING,
            "sessions",
            "folder = 'toy'\nsessions",
            "give either folder, of LETOR files, or matching",
        ),
        (MATCHING, '"wtm"', '"lsa"', "'words and topics' learns neither from judgements"),
        (MATCHING, "tested = 2", "tested = 6", "tested is 6, but there are 5 folds"),
        (MATCHING, "[users]", "[production]\ntrees = 3\n[users]", "with matching users see BM25"),
        (MATCHING, "sessions", "n_grades = 5\nsessions", "n_grades is for rankers of folder"),
        (MATCHING, "sessions", "n_columns = 5\nsessions", "n_columns is for rankers of folder"),
        (MATCHING, '"words and topics"', '"ssi"', r"two models share the name \(as a folder\) ssi"),
        (MATCHING, '"wtm"', '"wtm"\nparams = { ranq = 3 }', "'wtm' has no parameter 'ranq'"),
        (MATCHING, "rank = 4", "list_share = 0.5", "model 'ssi': list_share has no effect here"),
        (CLICKS, "kind =", "seed = 2147483647\nkind =", "seed: .* add up to 2,147,483,648, and"),
        (CLICKS, "kind =", "measure = 'err@10'\nkind =", r"labels .* up to 20, .* n_grades = 5"),
        (CLICKS, "[users]", "[users]\ncontinuation = 0.5", "continuation: users of the model pbm"),
        (CLICKS, "[users]", "[users]\nmodel = 'dcm'\neta = 2.0", "eta: users of the model dcm"),
    ],
)
def test_mistakes_are_told(tmp_path, file, old, new, message):
    toml = tmp_path / "x.toml"
    toml.write_text(file.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        run_file(toml, data=tmp_path, out=tmp_path / "out")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The sample collection, and a study of models on it."""
    folder = tmp_path_factory.mktemp("texts")
    write_sample(folder / "sample")
    toml = folder / "x.toml"
    toml.write_text(MATCHING, encoding="utf-8")
    return toml, folder / "sample"


def test_an_unknown_field_is_told_before_a_model_is_trained(texts, tmp_path):
    toml = tmp_path / "x.toml"
    toml.write_text(MATCHING + 'field = "titel"\n', encoding="utf-8")
    with pytest.raises(InputError, match="no field 'titel'; it has body"):
        run_file(toml, data=texts[1], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_models_learn_from_the_clicks_of_others(texts, tmp_path):
    toml, data = texts
    report = run_file(toml, data=data, out=tmp_path / "out")
    text = (report / "tables.txt").read_text(encoding="utf-8")
    assert "ssi trained on clicks" in text
    assert "words and topics trained on clicks" in text
    assert "In production: BM25" in text
    assert "debiased, 100 sessions (2)" in text  # two folds, of which something must be said
    values = pd.read_csv(report / "per_query.csv", dtype={"qid": str})
    of = dict(iter(values.groupby("learner")))
    assert set(of) == {"ssi", "words and topics"}
    first, second = (frame.set_index("qid") for frame in of.values())
    assert len(first) == len(set(first.index))
    # Users, and what they see, are the same for all learners.
    pd.testing.assert_series_equal(first["in production"], second["in production"])
    assert not first["true labels"].equals(second["true labels"])


@pytest.mark.parametrize("learns", ["models", "rankers"])
def test_too_few_clicks_are_told(tmp_path, texts, learns):
    """Two sessions teach nothing: what ranked before goes on to rank, and the report says so."""
    if learns == "models":
        data, text = texts[1], MATCHING
    else:
        data, text = tmp_path / "data", write_clicks(tmp_path / "data")
    toml = tmp_path / "x.toml"
    few = re.sub(r"(?m)^sessions = .*", "sessions = [2]", text).replace("= 400", "= 2")
    toml.write_text(few, encoding="utf-8")
    report = run_file(toml, data=data, out=tmp_path / "out")
    values = pd.read_csv(report / "per_query.csv")
    assert values["debiased 2"].equals(values["in production"])
    assert not values["true labels"].equals(values["in production"])
    assert "Not trained, ranks as before" in (report / "tables.txt").read_text(encoding="utf-8")


def test_a_measure_of_another_convention_trains_rankers_on_clicks_all_the_same(tmp_path):
    toml = tmp_path / "x.toml"
    text = write_clicks(tmp_path / "data").replace("[100, 400]", "[400]")
    toml.write_text("measure = 'letor4:ndcg@5'\n" + text, encoding="utf-8")
    report = run_file(toml, data=tmp_path / "data", out=tmp_path / "out")
    values = pd.read_csv(report / "per_query.csv")
    assert not values["raw 400"].equals(values["in production"])
    assert "Not trained" not in (report / "tables.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("reason", "told"), [("what for?", "what for?"), ("none", "none.")])
def test_the_reason_why_nothing_was_trained_is_a_sentence(reason, told):
    def fails(judgements):
        raise InputError(reason)

    learner = Learner(None, None, Learned(len), None, fails)
    assert list(learner.of_clicks(None).remarks) == [f"Not trained, ranks as before: {told}"]


def test_queries_that_belong_together_are_tested_together():
    """Eight that gain are significant; in two groups, half of the sign patterns are as good."""
    raw = np.linspace(0.1, 0.5, 8)
    alone = results([raw], [raw + 0.1], [raw + 0.2]).comparisons.iloc[0]
    assert alone["p"] == 2 / 2**8
    together = results([raw], [raw + 0.1], [raw + 0.2], {str(i): i // 4 for i in range(8)})
    assert together.comparisons.iloc[0]["p"] == 2 / 2**2
    assert together.comparisons.iloc[0]["n_groups"] == 2


def test_queries_that_belong_together_are_in_one_part(texts):
    """Else models would be tested on queries whose clicks they saw; one without a word is told."""
    toml, data = texts
    path = data / "beir" / "queries.jsonl"
    before = path.read_text("utf-8")
    lines = [json.loads(line) for line in before.splitlines()]
    for i, line in enumerate(lines):
        line["text"] = lines[i // 3 * 3]["text"] if i else "xyzzy"
        line.pop("group", None)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    try:
        config = ClicksStudy.read(toml, data)
        learners = MatchingLearners(config, config.matching, data, Digests())
    finally:
        path.write_text(before, "utf-8")
    for fold in learners.folds:
        tested = {learners.groups[query] for query in fold.test}
        assert not tested & {learners.groups[q] for q in (*fold.train, *fold.validation)}
    assert any("3 judged queries without a word of any document" in r for r in learners.remarks)


def test_what_models_learn_from_is_what_was_clicked(texts, monkeypatch):
    """Users without noise click relevant documents alone; after many sessions most of these are
    better than what is shown on average."""
    toml, data = texts
    config = ClicksStudy.read(toml, data)
    learners = MatchingLearners(config, config.matching, data, Digests())
    learner = learners.learner("ssi", learners.folds[0], 0)
    seen = []
    monkeypatch.setattr(learners, "_fitted", lambda recipe, pairs: seen.append(pairs))
    users = config.users.behaviour
    scores = learner.production.scores(learner.shown)
    log = Simulation(learner.shown, scores, users, 6, 1.0).log(20_000)
    learner.of_clicks(ClickJudgements(PositionBased().fit(log), min_evidence=1.0))
    learner.of_labels()
    clicked, labelled = ({*zip(p.query.tolist(), p.document.tolist(), strict=True)} for p in seen)
    assert clicked <= labelled
    assert len(clicked) > 0.5 * len(labelled)
    collection = learners.context.collection
    every = collection.judgements
    judged = {*zip(every.query.tolist(), every.document.tolist(), strict=True)}
    assert labelled <= judged
    tested = {collection.query_ids.index(query) for query in learner.test.query_ids}
    assert not tested & {query for query, _ in labelled}
    mates = {collection.query_ids.index(query) for query in learner.shown.query_ids}
    assert {query for query, _ in labelled} <= mates


def test_learners_are_known_by_their_files_and_models_alone(texts, tmp_path, capsys):
    """Files may be moved; another model or fold leaves the others as they are."""
    data = texts[1]
    shutil.copytree(data, tmp_path / "data" / "below")
    few = MATCHING.replace("[100, 2000]", "[100]").replace("tested = 2", "tested = 1")
    first, _, _ = few.rpartition("[[matching.models]]")

    def to_do(text):
        (tmp_path / "x.toml").write_text(text, encoding="utf-8")
        options = {"data": tmp_path / "data", "out": tmp_path / "out"}
        run_file(tmp_path / "x.toml", **options, dry_run=True)
        run_file(tmp_path / "x.toml", **options)
        return re.findall(r"(?m)^(.*?), simulation.*to do", capsys.readouterr().out)

    def moved(text):
        return text.replace('folder = "beir"', 'folder = "./below/beir"')

    shutil.copytree(data / "beir", tmp_path / "data" / "beir")
    assert to_do(first) == ["ssi"]
    assert to_do(moved(first)) == []
    assert to_do(few) == ["words and topics"]
    assert to_do(few.replace("tested = 1", "tested = 2")) == ["ssi", "words and topics"]


def test_folds_may_be_moved_and_their_number_of_columns_given(tmp_path, capsys):
    toml, data = tmp_path / "x.toml", tmp_path / "data"
    toml.write_text(write_clicks(data), encoding="utf-8")
    run_file(toml, data=data, out=tmp_path / "out")
    data.rename(tmp_path / "moved")
    name = re.search(r'(?m)^folder = "(.*)"', toml.read_text())[1]
    moved = toml.read_text().replace(f'"{name}"', f'"moved/{name}"')
    toml.write_text(f"n_columns = 3\n{moved}", encoding="utf-8")
    run_file(toml, data=tmp_path, out=tmp_path / "out", dry_run=True)
    assert " 0 to do" in capsys.readouterr().out
