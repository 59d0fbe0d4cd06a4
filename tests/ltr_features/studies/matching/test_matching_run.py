"""A whole run on small data: tables, reuse, resuming."""

import json
import math
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from folders import unwrapped
from scipy.stats import sem, ttest_1samp
from small_studies import MATCHING

from ltr_features.studies.kinds.matching_config import ScatterConfig, TableConfig, TaskConfig
from ltr_features.studies.kinds.matching_report import (
    MatchingResults,
    OrderCheck,
    _thousands,
    document,
    measures_of,
    order_checks,
    task_line,
)
from ltr_features.studies.kinds.task_tables import Fit, Row, too_few_queries
from ltr_features.studies.page.verdicts import signed
from ltr_features.studies.run import run_file


@pytest.fixture(scope="module")
def finished(small_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    toml = folder / "small.toml"
    toml.write_text(MATCHING, encoding="utf-8")
    report = run_file(toml, data=small_data, out=folder / "out", threads=1)
    return small_data, toml, folder / "out", report


def made(out):
    return {path: path.stat().st_mtime_ns for path in sorted(out.rglob("result.json"))}


OTHER_TASKS = {"fewer links": {"use_share": 0.5}, "other articles": {"folder": "papers"}}


def results_of(fits, groups):
    """Rows of a table "t" with this average precision in each fit."""
    rows = {
        ("t", label): Row(
            [Fit(pd.DataFrame({"group": groups, "ap": ap, "p10": ap}), {}, {}) for ap in of]
        )
        for label, of in fits.items()
    }
    task = TaskConfig(source="links", folder="articles")
    other = {name: task.model_copy(update=given) for name, given in OTHER_TASKS.items()}
    config = SimpleNamespace(tasks={"x": task, **other})
    return MatchingResults(config, rows, {}, {})


def order_check(fits, groups, further=(), tasks=None):
    """The check of "a < b", and of further claims, of average precision in each fit."""
    rows = [{"label": label, "task": (tasks or {}).get(label)} for label in fits]
    table = TableConfig(name="t", title="", task="x", rows=rows, order=[("a", "b"), *further])
    return order_checks(results_of(fits, groups), table)[0]


NOT_TESTED = ", not tested: the rows have other test queries"


@pytest.mark.parametrize(
    ("difference", "p", "corrected", "sign", "text"),
    [
        (0.1, 0.0002, 0.0006, "✓", "holds (+0.1000, p = 0.0002, corrected 0.0006)"),
        (0.1, 0.04, 0.12, "(✓)", "holds, not significantly (+0.1000, p = 0.040, corrected 0.12)"),
        (0.1, math.nan, math.nan, "(✓)", f"in this order (+0.1000{NOT_TESTED})"),
        (-0.1, 0.01, 0.02, "✗", "does not hold (−0.1000, p = 0.010, corrected 0.020)"),
        (-0.1, 0.04, 0.12, "≈", "not contradicted (−0.1000, p = 0.040, corrected 0.12)"),
        (-0.1, math.nan, math.nan, "≈", f"in the other order (−0.1000{NOT_TESTED})"),
    ],
)
def test_what_became_of_a_claim(difference, p, corrected, sign, text):
    check = OrderCheck("a", "b", difference, p, 40, None, corrected)
    assert (check.outcome[0], check.text) == (sign, f"a < b: {text}")
    grouped = replace(check, n_groups=1200)
    assert grouped.text == f"a < b: {text[:-1]} by 1,200 groups of queries)"


def test_the_sizes_of_a_task_are_told_in_their_places():
    names = (
        "training_pairs", "test_pairs", "test_queries", "database", "triples", "document_words",
        "words_per_document", "words_per_query", "without_words", "reversed_pairs",
    )  # fmt: skip
    facts = {name: 1000.0 + i for i, name in enumerate(names)}
    task = TaskConfig(source="links", folder="articles")
    config = SimpleNamespace(tasks={"x": task}, repeats=1)
    table = TableConfig(name="t", title="", task="x", rows=[{"label": "a"}])
    assert task_line(MatchingResults(config, {}, {"x": facts}, {}), table).startswith(
        "1,000 training and 1,001 test pairs; 1,002 test queries over 1,003 documents; 1,004 "
        "triples; dictionary of 1,005 words, 1,006 per document, 1,007 per query. 1,008 documents "
        "have no word, 1,009 test pairs are training pairs the other way round. Models were fitted "
        "once"
    )


def test_numbers_of_weights_are_rounded_to_thousands_and_millions():
    assert [_thousands(n) for n in (999, 1000, 12_345, 2_540_000)] == ["999", "1k", "12k", "2.5M"]


def test_tables_show_our_numbers_beside_the_papers(finished):
    *_, report = finished
    text = (report / "tables.txt").read_text(encoding="utf-8")
    rows = pd.read_csv(report / "rows.csv").set_index("label")
    assert list(rows.index) == [
        "TFIDF", "SSI", "TFIDF of links", "CL-LSI", "SSI of two languages",
    ]  # fmt: skip
    ssi, tfidf = rows.loc["SSI"], rows.loc["TFIDF"]
    loss = f"{100 * ssi['rank_loss']:.2f}% ±{100 * ssi['rank_loss_error']:.2f}"
    means = [f"{ssi[name]:.3f} ±{ssi[f'{name}_error']:.3f}" for name in ("map", "p10")]
    assert re.search(r"SSI +" + r" +".join(map(re.escape, [loss, *means])), text)
    assert "0.329 ±0.010" in text
    assert "0.614" in text
    assert "Models were fitted once" in text
    assert tfidf["paper_rank_loss"] == 1.62
    assert rows.loc["TFIDF of links", "map"] == tfidf["map"]
    [line] = re.findall(r"TFIDF < SSI: .*", text)
    assert signed(ssi["map"] - tfidf["map"]) in line
    assert "SSI: A remark." in text


def test_the_verdict_warns_of_answers_that_training_gives_away(finished):
    *_, report = finished
    config = SimpleNamespace(tables=[], scatter=None, title="", introduction="", notes=[])
    facts = {
        task: {
            "reversed_pairs": n, "test_pairs": 4, "shared_words": 1, "taught_pairs": 0,
            "copies": 0, "test_queries": 9, "wordless_queries": 0,
        }
        for task, n in (("many", 3), ("few", 1))
    }  # fmt: skip
    page = document(MatchingResults(config, {}, facts, {}))
    (warning,) = page.remarks
    assert "Task 'many': 3 of 4 test pairs are training pairs the other way" in warning
    assert "Task" not in (report / "verdict.txt").read_text("utf-8")


LANGUAGES = """
kind = "matching"
title = "Packages"
[tasks.mates]
source = "pairs"
folder = "packages"
cjk_bigrams = {bigrams}
[[tables]]
name = "mates"
title = "Mates"
task = "mates"
[[tables.rows]]
label = "CL-LSA"
model = "cl-lsa"
params = {{ rank = 4, word_weight = 0.0, vocabularies = "separate" }}
"""


@pytest.mark.parametrize(
    ("space", "bigrams", "unknown"),
    [("", "false", "100 %"), ("", "true", "33 %"), (" ", "false", None)],
)
def test_the_verdict_warns_of_words_that_training_does_not_have(tmp_path, space, bigrams, unknown):
    """Names of two Japanese words, each known by itself: without spaces they are one unknown word,
    or three pairs of characters, of which that in the middle is unknown."""
    nouns = {"音楽": "music", "画像": "image", "動画": "video"}
    verbs = {"編集": "editor", "再生": "player", "変換": "converter"}
    names = [(f"{n}{space}{v}", f"{nouns[n]} {verbs[v]}") for n in nouns for v in verbs]
    folder = tmp_path / "packages"
    folder.mkdir()
    test = names[::4]
    train = [name for name in names if name not in test]
    for part, chosen in {"train": train, "dev": train[:1], "test": test}.items():
        for language, texts in zip(("ja", "en"), zip(*chosen, strict=True), strict=True):
            (folder / f"{part}.{language}").write_text("\n".join(texts) + "\n", "utf-8")
    toml = tmp_path / "small.toml"
    toml.write_text(LANGUAGES.format(bigrams=bigrams), "utf-8")
    report = run_file(toml, data=tmp_path, out=tmp_path / "out", threads=1)
    verdict = unwrapped(report / "verdict.txt")
    said = f"Task 'mates': {unknown} of the words of test queries are in no training query, so that"
    assert (said in verdict) if unknown else ("Task" not in verdict)
    assert "of test documents" not in verdict


def test_queries_made_of_one_document_are_tested_together(finished):
    """As fisher's test on the sums of the groups says; here each article asks once."""
    _, _, out, _ = finished
    frames = [pd.read_csv(path) for path in out.rglob("per_query.csv")]
    assert all(frame["group"].is_unique for frame in frames)
    ap = np.linspace(0, 0.5, 12)
    check = order_check({"a": [ap], "b": [ap + 0.1]}, np.arange(12) // 3)
    assert (check.p, check.n_groups) == (2 / 2**4, 4)
    assert check.outcome[1] == "holds, not significantly"
    assert "by 4 groups of queries" in check.text


def test_rows_are_tested_query_by_query_only_if_their_tasks_ask_the_same():
    """Row numbers of queries are alike in all tasks."""
    ap = np.linspace(0.1, 0.5, 8)
    fits = {"a": [ap], "b": [ap + 0.1]}
    fewer = order_check(fits, np.arange(8), tasks={"b": "fewer links"})
    assert (fewer.p, fewer.outcome[1]) == (2 / 2**8, "holds")
    other = order_check(fits, np.arange(8), tasks={"b": "other articles"})
    assert np.isnan(other.p)
    assert "a < b: in this order (+0.1000, not tested: " in other.text


def test_a_scatter_plot_pairs_the_values_of_one_query():
    """Tasks that use other shares of many articles' links draw other test queries."""
    queries = {"a": [1, 3, 5, 8], "b": [3, 4, 5, 8]}
    rows = {
        ("t", label): Row([Fit(pd.DataFrame({"ap": np.array(asked) / 10}, asked), {}, {})])
        for label, asked in queries.items()
    }
    drawn = ScatterConfig(table="t", model="a", against=["b"], n_queries=2)
    config = SimpleNamespace(
        tables=[], scatter=drawn, curves=None, title="", introduction="", notes=[]
    )
    [section] = document(MatchingResults(config, rows, {}, {})).sections
    [(told, _)] = section.figures
    assert told.startswith("Average precision of 2 queries: a against b.")
    assert told.endswith("a did better: 0 queries; below: 0.")  # the same values, of 3 and 5


@pytest.mark.parametrize(("gain", "shown"), [(-0.1, "(−0.1000, p"), (0.0, "(0.0000, p")])
def test_differences_are_written_as_in_other_reports(gain, shown):
    ap = np.linspace(0.1, 0.5, 8)
    assert shown in order_check({"a": [ap], "b": [ap + gain]}, np.arange(8)).text


def test_too_few_test_queries_are_told():
    """Four give p = 2 / 2^4 at best, eight p = 2 / 2^8."""
    [(_, told)] = too_few_queries([4, 4])
    assert "4 test queries (or groups of them) give a p-value of 0.12 at best" in told
    [(_, told)] = too_few_queries([4, 5])  # of which the larger number gives the smaller p
    assert "5 test queries (or groups of them) give a p-value of 0.062 at best" in told
    assert too_few_queries([8, 8]) == too_few_queries([]) == []


def test_an_order_must_hold_over_refits_too():
    """The same gain in every query, and 0.09 or -0.07 more of it by luck of the fit: as a t-test of
    two fits, which have one degree of freedom, says."""
    ap = np.linspace(0.1, 0.5, 40)
    gains = np.array([0.1 + 0.09, 0.1 - 0.07])
    check = order_check({"a": [ap], "b": [ap + gain for gain in gains]}, np.arange(40))
    assert check.difference == pytest.approx(gains.mean())
    assert check.p == pytest.approx(ttest_1samp(gains, 0).pvalue)
    assert check.outcome[1] == "holds, not significantly"
    once = order_check({"a": [ap], "b": [ap + gains.mean()]}, np.arange(40))
    assert once.p < 0.001


def test_claims_of_order_are_corrected_for_their_number():
    """Six queries of eight that gain: 1 of 32 by itself; with two claims more it is not enough."""
    ap = np.linspace(0.1, 0.5, 8)
    gain = np.array([0.1] * 6 + [0, 0])
    fits = {"a": [ap], "b": [ap + gain], "c": [ap + gain + 0.01 * (-1.0) ** np.arange(8)]}
    alone = order_check(fits, np.arange(8))
    assert (alone.p, alone.outcome[1]) == (1 / 32, "holds")
    among = order_check(fits, np.arange(8), [("b", "c")])
    assert (among.p, among.p_corrected) == (1 / 32, 2 / 32)
    assert among.outcome[1] == "holds, not significantly"
    assert "p = 0.031, corrected 0.062" in among.text


def test_standard_errors_are_those_of_the_mean_over_fits_and_groups():
    ap = np.random.default_rng(0).random((2, 60))
    found = results_of({"a": ap}, np.arange(60) // 3).rows["t", "a"]
    means = ap.mean(axis=0).reshape(20, 3).mean(axis=1)
    for fit in found.fits:
        fit.facts["measures"] = {"map": 0.0}
    assert measures_of(found)[0]["map_error"] == pytest.approx(sem(means))


def test_refits_have_other_seeds_and_their_spread_stands_beside_the_means(small_data, tmp_path):
    """TFIDF learns from no judgement and is fitted once; the tasks are the same in every fit."""
    toml = tmp_path / "small.toml"
    text = MATCHING.split('[[tables]]\nname = "two"')[0].replace("[0.03, 0.3]", "[0.3]")
    text = text.replace("rank = 4", 'rank = 4\ninit = "normal"')
    toml.write_text(text, encoding="utf-8")
    run_file(toml, data=small_data, out=tmp_path / "out", threads=1)
    before = made(tmp_path / "out")
    toml.write_text(text.replace('kind = "matching"', 'kind = "matching"\nrepeats = 3'))
    report = run_file(toml, data=small_data, out=tmp_path / "out", threads=1)
    after = made(tmp_path / "out")
    assert before.items() <= after.items()
    results = [json.loads(path.read_text("utf-8")) for path in after]
    assert sorted(found["trials"][0]["params"]["seed"] for found in results) == [0, 0, 1, 2]
    fits = [found["measures"]["map"] for found in results if found["model"] == "ssi"]
    row = pd.read_csv(report / "rows.csv").set_index("label").loc["SSI"]
    assert (row["fits"], row["map"]) == (3, pytest.approx(np.mean(fits)))
    assert row["map_spread"] == pytest.approx(np.std(fits, ddof=1))
    assert row["map_spread"] > 0
    captioned = "in brackets, their spread over 3 fits (standard deviation)"
    assert captioned in (report / "tables.tex").read_text(encoding="utf-8")
    for name in ("tables.txt", "report.html"):
        shown = unwrapped(report / name)
        assert captioned in shown
        assert f"±{row['map_error']:.3f} ({row['map_spread']:.3f})" in shown
        assert "were fitted 3 times with different seeds" in shown


def test_remarks_on_fits_stand_below_the_table(finished):
    """Of the model that is reported; the small task has few pairs for two languages."""
    *_, out, report = finished
    texts = [(report / name).read_text(encoding="utf-8") for name in ("tables.txt", "report.html")]
    found = [json.loads(path.read_text("utf-8"))["remarks"] for path in made(out)]
    assert any(found)
    for sentence in (s for remarks in found for s in remarks):
        beginning = " ".join(sentence.split()[:4])
        assert all(beginning in " ".join(text.split()) for text in texts)


def test_equal_rows_are_trained_once(finished):
    _, _, out, _ = finished
    assert len(made(out)) == 4


def test_the_page_is_one_file_with_tables_and_figures(finished):
    *_, report = finished
    page = (report / "report.html").read_text(encoding="utf-8")
    assert "Small &lt;experiment&gt;" in page
    assert "<experiment>" not in page
    assert page.count("<table") == 2
    assert page.count('<svg class="figure"') == 4
    assert "A finding." in page
    assert "http://" not in page
    assert "https://" not in page


def test_a_file_counts_for_what_is_made_of_it(finished, tmp_path, capsys):
    """Articles count for the tasks, rows and curves on links, sentences for the others."""
    data, toml, out, _ = finished
    copied = tmp_path / "data"
    shutil.copytree(data, copied)

    def to_do():
        run_file(toml, data=copied, out=out, dry_run=True)
        lines = capsys.readouterr().out.splitlines()
        return {line.split("  ")[0] for line in lines if "to do: changed" in line}

    assert not to_do()
    links = set()
    for file in ("articles/links.tsv", "articles/corpus.jsonl.gz"):
        content = (copied / file).read_bytes()
        (copied / file).write_bytes(content + content)
        links = to_do()
        assert links
        assert not any("mates" in stage for stage in links)
        (copied / file).write_bytes(content)
    for file in ("train.ja", "train.en", "dev.ja", "dev.en", "test.ja", "test.en"):
        path = copied / "sentences" / file
        content = path.read_bytes()
        path.write_bytes(content.replace(b"1", b"2"))
        mates = to_do()
        assert mates
        assert not mates & links
        path.write_bytes(content)


def test_files_may_be_moved(finished, tmp_path, capsys):
    """They are known by name and content."""
    data, toml, out, _ = finished
    shutil.copytree(data, tmp_path / "data" / "below")
    moved = tmp_path / toml.name
    moved.write_text(toml.read_text().replace('folder = "', 'folder = "./below/'))
    run_file(moved, data=tmp_path / "data", out=out, dry_run=True)
    assert " 0 to do" in capsys.readouterr().out
