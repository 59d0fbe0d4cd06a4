"""The standard experiment on a workspace or on LETOR folds is a valid file that says what is there;
it never replaces another one."""

from __future__ import annotations

import re
import shutil
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import toys
from folders import unwrapped
from learnable import rows
from toys import done, refused, topics

from letor.column_names import write_rows
from letor.errors import InputError, LetorWarning
from letor.measures import parse_measure
from letor.rankers.registry import ranker_names
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.studies import run
from ltr_features.studies.kinds.letor import LetorStudy
from ltr_features.studies.kinds.ranking import RankingStudy
from ltr_features.studies.kinds.ranking_checks import load_config
from ltr_features.studies.kinds.ranking_times import StageSeconds
from ltr_features.studies.standard_experiment import FILE, keep, standard_experiment
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Judgements

N_QUERIES = 24


@pytest.fixture(scope="module")
def collection():
    return topics()


@pytest.fixture(scope="module")
def workspace(collection, tmp_path_factory):
    return make_workspace(collection, tmp_path_factory.mktemp("standard") / "workspace")


def config_of(workspace, out):
    return load_config(keep(standard_experiment(workspace), out))


@pytest.mark.parametrize(
    "analyzer",
    [
        Analyzer(),
        Analyzer(stopwords="english", stemmer="english", min_length=1),
        Analyzer(stopwords=('the "', "\\n", "é"), lowercase=False, cjk_bigrams=True),
    ],
)
def test_it_reads_the_collection_and_analyses_texts_as_they_were_indexed(
    collection, analyzer, tmp_path
):
    named = replace(collection, name='A "name" \\ of mine')
    workspace = make_workspace(named, tmp_path / "workspace", analyzer=analyzer)
    config = config_of(workspace, tmp_path / "out")
    assert Analyzer(**config.text.model_dump()) == Analyzer(**asdict(analyzer))
    assert config.collection.options == {"folder": str(workspace / "collection")}
    assert config.title == 'Do matching columns help on A "name" \\ of mine?'
    assert [split.by for split in config.splits] == ["query"]


def test_what_judgements_add_is_measured_against_all_columns_that_read_none(workspace, tmp_path):
    config = config_of(workspace, tmp_path)
    learns = {model.name for model in config.models if model.recipe.looks_at_labels}
    columns = {system.name: set(system.columns) for system in config.systems}
    (whole, words), *_ = config.evaluation.comparisons
    against, baseline = config.evaluation.headline
    assert whole == against
    assert columns[whole] - columns[baseline] == learns == {"ssi", "s2net"}
    alone = {name for name, own in columns.items() if len(own - columns[words]) == 1}
    shown = {system for system, other in config.evaluation.comparisons if other == words}
    assert alone <= shown


def test_known_groups_and_times_have_splits_of_their_own(collection, tmp_path):
    few, many = (
        replace(
            collection,
            query_groups=[str(i % n) for i in range(N_QUERIES)],
            query_times=np.arange(N_QUERIES) % n * 1.0,
        )
        for n in (3, 6)
    )
    some = replace(many, query_times=np.where(many.query_times > 0, many.query_times, np.nan))
    same = replace(many, query_groups=collection.query_texts)  # as of a click log cut by time
    for name, known, expected, not_by in (
        ("few", few, ["query"], ["group", "time"]),
        ("many", many, ["query", "group", "time"], []),
        ("some", some, ["query", "group"], ["time"]),
        ("same", same, ["query", "time"], ["group"]),
    ):
        workspace = make_workspace(known, tmp_path / name)
        with warnings.catch_warnings(record=True) as caught:
            config = config_of(workspace, tmp_path / f"{name}-out")
        assert [split.by for split in config.splits] == expected
        told = [
            str(w.message) for w in caught if "queries are tested by their" not in str(w.message)
        ]
        assert [re.search("not split by ([a-z]+),", one)[1] for one in told] == not_by
        assert all(f"{one[1:]}." in config.introduction for one in told)


def test_too_few_groups_for_any_comparison_are_told_before_it_runs(collection, tmp_path):
    """Six comparisons by two measures: 12 times 2 / 2 ** n is .05 or more up to eight groups."""
    for n, expected in ((8, ["8 groups, so that p is 0.0078 at best, and nothing"]), (9, [])):
        grouped = replace(collection, query_groups=[str(i % n) for i in range(N_QUERIES)])
        workspace = make_workspace(grouped, tmp_path / str(n))
        with warnings.catch_warnings(record=True) as caught:
            standard_experiment(workspace)
        told = [str(warning.message) for warning in caught]
        found = [
            re.search("tested by their (.*) is significant after correction over 12", one)
            for one in told
        ]
        assert [match[1] for match in found] == expected


def test_sources_of_candidates_can_be_named(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.run").write_text("")
    given = {"judged": {}, "run": {"path": "a b.run", "depth": 7}}
    config = load_config(keep(standard_experiment(workspace, given), tmp_path))
    assert config.candidate_settings == {
        "judged": {},
        "run": {"path": str(tmp_path / "a b.run"), "depth": 7},
    }
    assert config_of(workspace, tmp_path / "other").candidate_settings == {"bm25": {"depth": 100}}


def test_the_first_place_is_measured_where_ndcg_at_10_counts_whole_lists(workspace, tmp_path):
    """As in product search: eight judged documents for each query."""
    usual, short = ["NDCG@10", "MAP"], ["NDCG@10", "NDCG@1", "MAP"]
    all_relevant = ["NDCG@10", "NDCG@1"]
    for i, (given, expected) in enumerate(
        [({"judged": {}}, all_relevant), ({"judged": {}, "bm25": {}}, usual), ({}, usual)]
    ):
        config = load_config(keep(standard_experiment(workspace, given), tmp_path / f"{i}"))
        assert list(config.evaluation.measures) == expected
    for size, expected in ((10, short), (11, usual)):
        file = tmp_path / f"{size}.txt"
        graded = rows(0, n_queries=12, size=size)
        write_rows(replace(graded, y=np.minimum(graded.y, 1)), file)
        found = LetorStudy.read(keep(standard_experiment(file), tmp_path / f"of-{size}"), tmp_path)
        assert list(found.measures) == found.compare_measures == expected
        assert all(parse_measure(found.measures[name]).name == name for name in expected)


def test_the_documents_that_queries_were_made_from_can_be_named(workspace, collection, tmp_path):
    config = config_of(workspace, tmp_path)
    (tmp_path / "sources.tsv").write_text(
        f"{collection.query_ids[3]}\t{collection.document_ids[5]}\n"
    )
    named = config.model_copy(update={"sources": "sources.tsv"})
    study = RankingStudy(named, tmp_path / "out", tmp_path)
    own = np.full(collection.n_queries, -1)
    own[3] = 5
    np.testing.assert_array_equal(study.collection.query_sources, own)
    pairs = study.pairs
    assert 5 not in pairs.document[pairs.query == 3]
    plain = RankingStudy(config, tmp_path / "out", tmp_path)
    assert plain.collection_stage.key != study.collection_stage.key


def test_sources_of_candidates_are_refused_where_there_is_no_choice(workspace, tmp_path):
    judged = ("--candidates", "judged", "--out", tmp_path / "out")
    depth = ("--candidates", "bm25.depth=0", "--dry-run", "--out", tmp_path / "out")
    told = refused("run", workspace, *depth)
    assert told == "candidates.bm25: depth must be 1 or more, got 0"
    said = refused("run", workspace, "--candidates", "judge", "--out", tmp_path / "out")
    assert "there is no source 'judge'; did you mean 'judged'?" in said
    write_rows(rows(4), tmp_path / "rows.txt")
    said = refused("run", tmp_path / "rows.txt", *judged)
    assert "has rows, whose documents are ranked: --candidates is for a workspace" in said
    assert "--candidates is for the standard experiment" in refused("run", "demo", *judged)
    assert "nowhere: no such file" in refused("run", "nowhere", *judged)
    assert not (tmp_path / "out").exists()


def test_too_few_judgements_are_told_before_anything_is_written(collection, tmp_path):
    judged = collection.judgements
    few = judged.query < 4
    judged = Judgements(judged.query[few], judged.document[few], judged.grade[few])
    make_workspace(replace(collection, judgements=judged), tmp_path / "workspace")
    message = refused("run", tmp_path / "workspace", "--out", tmp_path / "out")
    assert "has judgements of 4 queries; an experiment needs 5 or more" in message
    write_rows(rows(0, n_queries=4), file := tmp_path / "rows.txt")
    message = refused("run", file, "--out", tmp_path / "out")
    assert f"{file} has rows of 4 queries; an experiment needs 5 or more" in message
    assert not (tmp_path / "out").exists()


def test_folds_that_rankers_cannot_use_are_told_before_models_are_trained(collection, tmp_path):
    """Queries without a word of the documents have no candidates."""
    texts = [text if i < 3 else f"unheard{i}" for i, text in enumerate(collection.query_texts)]
    make_workspace(replace(collection, query_texts=texts), tmp_path / "workspace")
    message = refused("run", tmp_path / "workspace", "--out", tmp_path / "out")
    assert re.search(
        r"split 'by-query', (Fold\d.*|all 5 folds): no (training|validation) query has rows of two "
        "different labels, as rankers need; of all 24 queries 3 have: judge more queries",
        message,
    )
    assert not (tmp_path / "out" / "models" / "by-query").exists()


def test_more_rows_than_lightgbm_takes_are_told_before_models_are_trained(
    collection, tmp_path, monkeypatch
):
    monkeypatch.setattr("letor.rankers.lambdamart.MAX_ROWS_PER_QUERY", 7)
    judged = collection.judgements
    graded = replace(judged, grade=np.arange(len(judged.grade)) % 2)
    make_workspace(replace(collection, judgements=graded), tmp_path / "workspace")
    said = refused("run", tmp_path / "workspace", "--candidates", "judged", "--out", tmp_path / "o")
    assert "has 8 rows; LightGBM takes at most 7 per query" in said
    assert not (tmp_path / "o" / "models").exists()


@pytest.mark.parametrize(
    ("grade", "message", "not_made"),
    [
        (31, "label 31 is too large for the exponential gain 2^label - 1 (at most 30)", "models"),
        (1001, "label 1001 is too large for the exponential gain 2^label - 1: bin", "letor"),
    ],
)
def test_grades_that_rankers_or_measures_refuse_are_told_before_it_takes_long(
    collection, tmp_path, grade, message, not_made
):
    """Votes as grades, say."""
    judged = collection.judgements
    graded = replace(judged, grade=np.arange(len(judged.grade)) % 2 * grade)
    make_workspace(replace(collection, judgements=graded), tmp_path / "workspace")
    said = refused("run", tmp_path / "workspace", "--candidates", "judged", "--out", tmp_path / "o")
    assert message in said
    assert not (tmp_path / "o" / not_made).exists()


def test_it_never_replaces_another_experiment(workspace, tmp_path):
    file = keep(standard_experiment(workspace), tmp_path)
    before = file.stat().st_mtime_ns
    assert keep(standard_experiment(workspace), tmp_path) == file
    assert file.stat().st_mtime_ns == before
    file.write_text(file.read_text() + "# mine\n")
    for dry_run in (True, False):
        with pytest.raises(InputError, match="is another experiment, or was changed, or written"):
            run.run_file(workspace, out=tmp_path, dry_run=dry_run)
    assert file.read_text().endswith("# mine\n")


def test_a_moved_workspace_has_the_same_experiment(collection, tmp_path):
    for name in ("first", "other"):
        make_workspace(collection, tmp_path / name)
    keep(standard_experiment(tmp_path / "first"), tmp_path)
    with pytest.raises(InputError, match="is another experiment"):
        keep(standard_experiment(tmp_path / "other"), tmp_path)
    (tmp_path / "first").rename(tmp_path / "moved")
    file = keep(standard_experiment(tmp_path / "moved"), tmp_path)
    assert file.read_text() == standard_experiment(tmp_path / "moved")
    file.write_text(file.read_text().replace("repeats = 3", "repeats = 5"))
    (tmp_path / "moved").rename(tmp_path / "again")
    with pytest.raises(InputError, match="is another experiment"):
        keep(standard_experiment(tmp_path / "again"), tmp_path)


def test_a_folder_that_is_no_workspace_is_told(tmp_path):
    assert "is no workspace and has no LETOR folds; make one by" in refused("run", tmp_path)


def test_a_dry_run_writes_nothing_and_a_run_answers(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Do matching columns help on topics?" in done("run", workspace, "--dry-run")
    dry = toys.run("run", workspace, "--dry-run", "--scheduler", "tcp://nowhere:1")
    assert "does not connect to --scheduler tcp://nowhere:1" in dry.stderr
    assert not list(tmp_path.iterdir())
    quick = standard_experiment(workspace).replace("repeats = 3", "repeats = 1")
    for model in ("ssi", "s2net"):
        own = f'model = "{model}"\n'
        quick = quick.replace(own, f"{own}params = {{ rank = 4, max_epochs = 1 }}\n")
    monkeypatch.setattr(run, "standard_experiment", lambda *_: quick)
    said = done("run", workspace, "--out", "out")
    assert "the word columns" in said
    assert "out/experiment.toml" in said
    assert "0 to do" in done("run", "out/experiment.toml", "--out", "out", "--dry-run")


COUNTED = {"family": "vsm", "trained on": "nothing: counts of the collection"}
LEARNED = {
    "c": {"family": "lsa", "trained on": "the texts of all documents, no judgement"},
    "d": {"family": "d2v", "trained on": "texts"},
    "e": {"family": "d2v", "trained on": "texts"},
}


def write_folds(folder, provenance):
    """Three folds of rows with the columns a to e."""
    X, n = rows(0, n_queries=12, size=6), 3
    X = replace(X.with_columns(["5"], X.X[:, 0]), column_names=list("abcde"), provenance=provenance)
    parts = [X.select_queries(X.query_ids[i::n]) for i in range(n)]
    for i in range(n):
        for j, part in enumerate(("test", "vali", "train")):
            (folder / f"Fold{i + 1}").mkdir(parents=True, exist_ok=True)
            write_rows(parts[(i + j) % n], folder / f"Fold{i + 1}" / f"{part}.txt")
    return folder


def rankers_of(folder, out):
    """The rankers, all with their defaults, but for the last, which chooses hard queries by one of
    the columns that the first one sees."""
    config = LetorStudy.read(keep(standard_experiment(folder), out), out)
    *rankers, chooser = config.rankers
    assert all(ranker.grid == {} and not ranker.params for ranker in rankers)
    assert chooser.label == config.hard_by
    assert chooser.chosen("abcde") == rankers[0].chosen("abcde")
    return {ranker.label: (ranker.ranker, ranker.chosen("abcde")) for ranker in rankers}


def test_on_folds_it_asks_what_each_family_of_learned_columns_adds_to_the_others(tmp_path):
    folder = write_folds(tmp_path / "folds", {"a": COUNTED} | LEARNED)
    assert rankers_of(folder, tmp_path / "out") == {
        "other columns": ("lambdamart", ["a", "b"]),
        "other columns + lsa": ("lambdamart", ["a", "b", "c"]),
        "other columns + d2v": ("lambdamart", ["a", "b", "d", "e"]),
        "all columns": ("lambdamart", list("abcde")),
    }


def test_on_folds_without_known_learned_columns_it_compares_all_rankers(tmp_path):
    for name, provenance in (("unknown", {}), ("learned", dict.fromkeys("abcde", LEARNED["c"]))):
        found = rankers_of(write_folds(tmp_path / name, provenance), tmp_path / f"{name}-out")
        assert next(iter(found)) == "lambdamart"
        assert found == {name: (name, list("abcde")) for name in ranker_names()}


def test_the_current_folder_is_called_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(write_folds(tmp_path / "folds", {}))
    assert "Which ranker is best on folds?" in standard_experiment(Path())


def test_rows_of_one_file_are_dealt_into_folds(tmp_path):
    for ending in ("txt", "parquet"):
        file = tmp_path / f"rows.{ending}"
        write_rows(rows(0, n_queries=12, size=6), file)
        config = LetorStudy.read(keep(standard_experiment(file), tmp_path / ending), tmp_path)
        assert [(scheme.k, scheme.official) for scheme in config.schemes] == [(5, False)]
        assert "Which ranker is best on rows" in done("run", file, "--dry-run")


def test_values_that_are_not_finite_are_missing_and_told(tmp_path):
    """Istella marks missing values so. The report tells them, too."""
    folder = write_folds(tmp_path / "folds", {"b": COUNTED} | LEARNED)
    for file in folder.glob("*/*.txt"):
        lines = file.read_text().splitlines()
        found = [re.sub(" 3:[^ ]+", " 3:1.79769e308", line) for line in lines]
        file.write_text("".join(f"{line}\n" for line in found))
    told = "count as missing: 72, in columns c"
    with pytest.warns(LetorWarning, match=told):
        said = done("run", folder, "--dry-run")
    assert "They may take about 1 minute" in said
    with pytest.warns(LetorWarning, match=told):
        assert told in " ".join(done("run", folder, "--out", tmp_path / "out").split())


def test_a_folder_without_validation_rows_is_told_what_to_do(tmp_path):
    folder = write_folds(tmp_path / "folds", {})
    (folder / "Fold1" / "vali.txt").unlink()
    said = refused("run", folder, "--dry-run")
    assert "has no validation file (vali.txt or the like)" in said
    assert "one file with all rows" in said


def test_a_run_on_folds_answers_and_says_where_its_experiment_is(tmp_path):
    folder, out = write_folds(tmp_path / "folds", LEARNED), tmp_path / "out"
    said = done("run", folder, "--out", out)
    assert "other columns + lsa" in said
    assert str(out / "experiment.toml") in said
    assert "0 to do" in done("run", folder, "--out", out, "--dry-run")


def test_a_run_that_cannot_read_its_rows_leaves_no_experiment(tmp_path):
    folder, out = write_folds(tmp_path / "folds", LEARNED), tmp_path / "out"
    test = folder / "Fold3" / "test.txt"
    rows = test.read_text()
    test.write_text("1 qid:1 1:x\n")
    assert "test.txt, line 1" in refused("run", folder, "--out", out)
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").touch()
    refused("run", folder, "--out", out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    (out / FILE).write_text("kept")
    assert "is another experiment" in refused("run", folder, "--out", out)
    assert (out / FILE).read_text() == "kept"
    (out / FILE).unlink()
    test.write_text(rows)
    assert "to do" in done("run", folder, "--out", out, "--dry-run")


def test_folds_of_a_workspace_are_reported_with_its_texts_and_groups(collection, tmp_path):
    """As long as the workspace is there. Without known groups, queries of the same text are one."""
    grouped = replace(collection, query_groups=[f"g{i // 3}" for i in range(N_QUERIES)])
    for name, of, n_groups in (("none", collection, 18), ("known", grouped, 8)):
        make_workspace(of, tmp_path / name / "workspace")
        folds, out = tmp_path / name / "folds", tmp_path / name / "out"
        done(
            "columns", "build", "--workspace", tmp_path / name / "workspace", "--family", "vsm",
            "--model", "lsa", "--param", "lsa.rank=4", "--folds", 4, "--out", folds,
        )  # fmt: skip
        done("run", folds, "--out", out)
        compared = pd.read_csv(out / "report" / "comparisons.csv")
        assert (compared["n_groups"] == n_groups).all()
        page = (out / "report" / "report.html").read_text(encoding="utf-8")
        assert re.search("without a row: [0-9]+ of 192 relevant documents; measures count", page)
        kinds = pd.read_csv(out / "report" / "query_classes.csv")["property"]
        assert set(kinds) == {"words", "relevant documents"}
        (tmp_path / name / "workspace").rename(tmp_path / name / "moved")
        with pytest.warns(LetorWarning, match="texts and groups of queries are unknown: "):
            assert "queries = " not in standard_experiment(folds)


def test_a_verdict_on_folds_tells_of_test_queries_that_were_made_from_documents(
    collection, tmp_path
):
    """Queries for training may be: their columns do not flatter those that people wrote."""
    made = np.array([0] * 10 + [-1] * (N_QUERIES - 10))
    make_workspace(replace(collection, query_sources=made), tmp_path / "workspace")
    for name, tested in (("people", range(12, N_QUERIES)), ("both", range(7, N_QUERIES))):
        parts = [f"q{i}\t{'test' if i in tested else 'train'}\n" for i in range(N_QUERIES)]
        (tmp_path / f"{name}.tsv").write_text("".join(parts))
        done(
            "columns", "build", "--workspace", tmp_path / "workspace", "--family", "vsm",
            "--family", "letters", "--split", tmp_path / f"{name}.tsv", "--out", tmp_path / name,
        )  # fmt: skip
        done("run", tmp_path / name, "--out", tmp_path / "out" / name)
        verdict = unwrapped(tmp_path / "out" / name / "report" / "verdict.txt")
        said = f"3 of {N_QUERIES - 7} test queries were drawn from documents of the collection"
        assert (said in verdict) == (name == "both")


def test_folds_of_appended_columns_know_the_workspace_that_gave_the_texts(collection, tmp_path):
    """Until they are made again without one."""
    grouped = replace(collection, query_groups=[f"g{i // 3}" for i in range(N_QUERIES)])
    workspace, folds, out = (tmp_path / name for name in ("workspace", "folds", "out"))
    make_workspace(grouped, workspace)
    rows = ["columns", "build", "--workspace", workspace, "--family", "vsm", "--folds", 4]
    done(*rows, "--out", folds)
    append = ["columns", "append", folds, "--family", "scores", "--option"]
    (tmp_path / "of.run").write_text("q0 Q0 d0 1 1.5 engine\n")
    append += [f"scores.files.engine={tmp_path / 'of.run'}", "--option", "scores.missing=lowest"]
    done(*append, "--workspace", workspace, "--out", out)
    found = LetorStudy.read(keep(standard_experiment(out), tmp_path / "report"), tmp_path)
    assert found.queries == found.groups == str(workspace / "collection" / "queries.jsonl")
    done(*append, "--out", out)
    assert "queries = " not in standard_experiment(out)


def test_texts_of_a_workspace_that_was_made_again_are_not_taken_for_those_of_the_folds(
    collection, tmp_path
):
    workspace, folds = tmp_path / "workspace", tmp_path / "folds"
    make_workspace(collection, workspace)
    rows = ["columns", "build", "--workspace", workspace, "--family", "vsm", "--folds", 3]
    done(*rows, "--out", folds)
    make_workspace(replace(collection, query_texts=["other"] * N_QUERIES), workspace)
    with pytest.warns(LetorWarning, match="has changed since"):
        assert "queries = " not in standard_experiment(folds)


def test_a_dry_run_tells_how_long_a_workspace_takes(collection, workspace, tmp_path):
    """Longer texts, more queries: longer; a source that is not indexed yet: unknown."""

    def minutes(of, name):
        said = done("run", of, "--dry-run", "--out", tmp_path / name)
        number, unit = re.search(r"They may take about (\d+) (\w+?)s? on", said).groups()
        return int(number) * {"minute": 1, "hour": 60, "day": 1440}[unit]

    short = minutes(workspace, "short")
    rng = np.random.default_rng(0)
    bodies = [
        f"{text} {' '.join(map('word{}'.format, rng.integers(5000, size=4000)))}"
        for text in collection.fields["body"]
    ]
    fields = {**collection.fields, "body": bodies}
    long = make_workspace(replace(collection, fields=fields), tmp_path / "long-texts")
    assert minutes(long, "long") > 3 * short

    file = keep(standard_experiment(workspace), tmp_path / "file")
    text = file.read_text(encoding="utf-8")
    moved = tmp_path / "collection"
    shutil.copytree(workspace / "collection", moved)
    text = text.replace(str(workspace / "collection"), str(moved))
    file.write_text(text, encoding="utf-8")
    assert "may take" not in done("run", file, "--dry-run", "--out", tmp_path / "unknown")


def test_judged_candidates_take_as_long_as_they_are_many(collection, workspace):
    """Not as BM25's hundred for each query, of which a query of product search has five judged."""
    context = open_workspace(workspace)
    found = {"judged": {}}, {"bm25": {"depth": 10}}, {"rated": {"source": "judged"}, "bm25": {}}
    judged, ten, both = (StageSeconds(context, settings, 48).columns for settings in found)
    per_query = len(collection.judgements) / N_QUERIES
    assert judged / ten == pytest.approx(per_query / 10)
    assert both == pytest.approx(judged + 10 * ten)
