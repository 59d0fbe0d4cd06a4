"""The whole path on a small synthetic dump: the same bytes for any number of threads, reuse, and
rows that say what they are."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from beir_folders import with_ids, write_beir
from dumps import topical_dump
from folders import different, unwrapped, written

from letor.column_names import read_rows
from letor.errors import InputError
from letor.evaluation import evaluate
from letor.folds import Fold, letor_rotation
from letor.measures import parse_measure
from letor.rankers.registry import load_ranker
from letor.trec import read_run
from ltr_features.cluster import connected
from ltr_features.columns.out_of_fold import train_parts
from ltr_features.columns.term_space import TermSpace
from ltr_features.studies.kinds.ranking import RankingStudy
from ltr_features.studies.kinds.ranking_checks import demo_config
from ltr_features.studies.kinds.ranking_config import ExperimentConfig, SystemConfig
from ltr_features.studies.kinds.ranking_findings import Findings
from ltr_features.studies.kinds.ranking_models import map_of_documents, map_of_words
from ltr_features.studies.kinds.sections import FamilyConfig
from ltr_features.studies.kinds.systems import turned
from ltr_features.studies.progress import TIMES, Reporter
from ltr_features.studies.workers import StudyPlan, _make, done_by_workers
from ssi_models.ssi.low_rank import LowRankSSI


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> ExperimentConfig:
    dump = tmp_path_factory.mktemp("dump") / "topics.xml"
    dump.write_bytes(topical_dump(25, 5))
    values = demo_config(dump).model_dump(mode="json")
    values["collection"] |= {"words_per_query": 4, "min_words": 20, "min_document_frequency": 2}
    values["candidate_depth"] = 30
    for part in values["columns"]:
        if "dimension" in part["options"]:
            part["options"] |= {"dimension": 8, "epochs": 2}
    lsa, ssi = values["models"]
    lsa["params"] |= {"rank": 8}
    ssi["params"] |= {"rank": 8, "max_epochs": 3, "batch_size": 64, "n_negatives": 64}
    ssi["params"] |= {"unit_documents": False}  # with which it learns something from so little
    values["rankers"][0]["params"] |= {"n_estimators": 10, "min_data_in_leaf": 5, "seed": 4}
    values["rankers"].append({"name": "xgb", "ranker": "xgboost", "params": {"n_estimators": 5}})
    values["systems"].append(
        {"name": "words, XGBoost", "columns": ["letor46"], "ranker": "xgb", "repeats": 1}
    )
    for system in values["systems"]:
        if system.get("columns") and not system.get("ranker"):
            system["ranker"] = "LambdaMART"
    values["nearest_words"] = ["CommonAA", "absent"]
    values["repeats"] = 1
    values["evaluation"]["learning_curve"] = [0.5]
    repeated = {system["name"]: system for system in values["systems"]}
    for name in ("words", "words+SSI", "SSI"):
        repeated[name]["repeats"] = 2
    return ExperimentConfig.model_validate(values)


@pytest.fixture(scope="module")
def run(config, tmp_path_factory):
    """The experiment, run once with one thread."""
    experiment = RankingStudy(config, tmp_path_factory.mktemp("out"), threads=1)
    experiment.run()
    return experiment


@pytest.fixture(scope="module")
def one_of_each(config) -> ExperimentConfig:
    """The experiment with one split, and one system of each kind: a column, a ranker on columns
    that are trained or not, each of the rankers, repeated or not."""
    names = ("BM25", "SSI", "words", "words+SSI", "words, XGBoost", "words, refit 1")
    values = config.model_dump(mode="json", exclude_none=True)
    values["systems"] = [system for system in values["systems"] if system["name"] in names]
    values["splits"] = values["splits"][:1]
    values["evaluation"] |= {"comparisons": [["words+SSI", "words"]], "hard_selectors": ["BM25"]}
    values["evaluation"] |= {"headline": ["words+SSI", "words"], "hard_systems": ["words+SSI"]}
    return ExperimentConfig.model_validate(values)


@pytest.fixture(scope="module")
def small_run(one_of_each, tmp_path_factory) -> Path:
    """Where it was run with one thread."""
    folder = tmp_path_factory.mktemp("small")
    RankingStudy(one_of_each, folder, threads=1).run()
    return folder


@pytest.mark.parametrize("memory", [None, 1 << 14], ids=["in memory", "in files"])
def test_another_run_gives_the_same_bytes(
    small_run, one_of_each, tmp_path, memory, windows_line_ends
):
    """For any number of threads, any memory and on any system; the times that stages took are the
    one file that differs."""
    study = RankingStudy(one_of_each, tmp_path, threads=2, memory=memory)
    study.run()
    in_files = {memory is not None}
    assert {isinstance(study.part(*part).X, np.memmap) for part in some_parts(study)} == in_files
    assert different(small_run, tmp_path) == {TIMES}


def test_shuffled_columns_are_those_of_the_first_fit(small_run, one_of_each, tmp_path):
    """The other ways to value columns are of all fits."""
    shutil.copytree(small_run, tmp_path / "out")
    evaluation = one_of_each.evaluation.model_copy(update={"column_value": "words+SSI"})
    valued = one_of_each.model_copy(update={"evaluation": evaluation})
    report = RankingStudy(valued, tmp_path / "out", threads=1).run()
    systems, measure = tmp_path / "out" / "systems", evaluation.measures[0]
    of_fits = [
        pd.read_csv(systems / split / "words_SSI" / "per_query.csv")[measure].mean()
        for split in ("by-query", "by-query.refit-1")
    ]
    table = pd.read_csv(next(report.rglob("*column_value.csv"))).set_index("kind")
    shuffled, others = table.loc[["shuffled"]], table.loc[["left out"]]
    assert shuffled["with"].to_numpy() == pytest.approx(of_fits[0])
    assert others["with"].to_numpy() == pytest.approx(np.mean(of_fits)) != of_fits[0]
    np.testing.assert_allclose(shuffled["with"] - shuffled["without"], shuffled["value"])


def to_do(study: RankingStudy) -> list[str]:
    """The stages that a run would make."""
    look = study.runner.stages.look
    return [stage.name for stage in study.stages() if not look(stage).reused]


def some_parts(study):
    return [(study.config.splits[0], "Fold1", part) for part in ("train", "vali", "test")]


def test_a_worker_that_cannot_make_the_plan_is_named():
    def without_plug_in():
        raise InputError("there is no source 'theirs'")

    plan = StudyPlan(without_plug_in, "run")
    with pytest.raises(InputError, match=r"worker on .*: there is no source 'theirs'"):
        _make(plan, "collection", "key", "out/collection")


def test_workers_make_the_same_bytes(small_run, one_of_each, tmp_path, workers):
    with connected(workers.scheduler_address, tmp_path) as cluster:
        study = RankingStudy(one_of_each, tmp_path)
        study.run(made_by=lambda stages: done_by_workers(study, stages, cluster))
    assert different(small_run, tmp_path) == {TIMES}


def test_ids_that_letor_text_cannot_hold_are_refused_with_the_collection(tmp_path):
    documents, queries = (
        with_ids({f"{name} {i}": "a word" for i in range(9)}) for name in ("corpus", "queries")
    )
    judged = "".join(f"queries {i}\tcorpus {i}\t1\n" for i in range(9))
    write_beir(tmp_path, documents, queries, test=judged)
    values = demo_config().model_dump(mode="json")
    values["collection"] = {"source": "beir", "folder": str(tmp_path)}
    experiment = RankingStudy(ExperimentConfig.model_validate(values), tmp_path / "out")
    with pytest.raises(InputError, match="query id 'queries 0' and 8 more: LETOR text and"):
        experiment.run()
    assert not (tmp_path / "out" / "collection").exists()


def test_a_second_run_makes_nothing_again(run, config, capsys):
    root = run.folder
    before = written(root)
    RankingStudy(config, root, reporter=Reporter(shown=True)).run()
    assert "not of this experiment" not in capsys.readouterr().err
    assert written(root) == before


def test_every_query_is_tested_once_and_its_pool_is_complete(run):
    split = run.config.splits[0]
    tested = [q for n in range(1, 6) for q in run.part(split, f"Fold{n}", "test").query_ids]
    assert sorted(tested) == sorted(run.collection.query_ids)
    rows = run.part(split, "Fold1", "test")
    assert len(rows.column_names) == 46 + 1 + 34 + 2
    assert list(rows.column_names)[-2:] == ["lsa", "ssi"]
    assert rows.provenance["ssi"]["fold"] == "Fold1"
    for part in ("train", "vali"):
        assert not set(run.part(split, "Fold1", part).query_ids) & set(rows.query_ids)


def test_one_fold_of_each_split_is_written_as_letor_text(run):
    for split in run.config.splits:
        folder = run.folder / "letor" / split.name
        assert [path.name for path in folder.iterdir() if path.is_dir()] == ["Fold1"]
        for part in ("train", "vali", "test"):
            text = read_rows(folder / "Fold1" / f"{part}.txt.zst")
            rows = run.part(split, "Fold1", part)
            assert text.column_names == rows.column_names
            assert text.query_ids == rows.query_ids
            assert (text.provenance, text.missing) == (rows.provenance, rows.missing)
            np.testing.assert_array_equal(text.X, rows.X)
            np.testing.assert_array_equal(text.y, rows.y)
            np.testing.assert_array_equal(list(text.document_ids), list(rows.document_ids))


def test_the_learning_curve_is_of_systems_that_saw_fewer_training_queries(run):
    for output in run.outputs:
        half = output.split.of_share(0.5)
        few, whole = run.part(half, "Fold1", "train"), run.part(output.split, "Fold1", "train")
        assert 0.4 < len(few.query_ids) / len(whole.query_ids) < 0.6
        assert set(few.query_ids) < set(whole.query_ids)
        tested = [run.part(split, "Fold1", "test") for split in (half, output.split)]
        assert tested[0].query_ids == tested[1].query_ids
        assert (tested[0].column("ssi") != tested[1].column("ssi")).any()  # trained on fewer, too
        np.testing.assert_array_equal(tested[0].column("lsa"), tested[1].column("lsa"))
    table = pd.read_csv(run.folder / "report" / "tables" / "learning_curve.csv")
    by_query = table[table["study"] == "Unseen queries"]
    assert by_query["system"].tolist() == ["everything", "words+SSI"] * 2
    means = pd.read_csv(run.folder / "report" / "tables" / "means.csv")
    means = means[means["study"] == "Unseen queries"].set_index("system")["NDCG@10"]
    assert by_query["system_mean"].tolist()[2:] == pytest.approx(
        [means["everything"], means["words+SSI"]]
    )
    assert (run.folder / "report" / "figures" / "Unseen_queries-learning-curve.svg").exists()


@pytest.mark.parametrize("name", ["lsa", "w2v-word"])
def test_a_map_of_the_words_of_a_model_or_of_vectors(run, config, name):
    experiment = RankingStudy(config.model_copy(update={"word_map": name}), run.folder)
    found = map_of_words(experiment)
    assert found.name.startswith(name)
    assert found.dimension == 8
    assert found.labels[0] == "commonaa"  # a word of nearest_words; the other one does not occur
    assert "absent" not in found.labels
    index = run.context.index
    counts = index.field("whole").document_frequency[index.vocabulary.rows(list(found.labels[1:]))]
    assert (np.diff(counts) <= 0).all()


@pytest.mark.parametrize("name", ["lsa", "d2v-word"])
def test_a_map_of_the_documents_of_a_model_or_of_vectors(run, config, name):
    experiment = RankingStudy(config.model_copy(update={"document_map": name}), run.folder)
    found = map_of_documents(experiment)
    assert found.name.startswith(name)
    assert found.of == "documents"
    assert 3 <= len(found.labels) <= min(400, experiment.collection.n_documents)
    judged, ids = experiment.collection.judgements, experiment.collection.document_ids
    relevant = Counter(judged.document[judged.grade > 0].tolist())
    most = max(relevant.values())
    first = {experiment.title(ids[d])[:60] for d, n in relevant.items() if n == most}
    assert found.labels[0] in first


def test_the_ssi_column_is_the_score_of_the_fold_s_model(run):
    """For test rows: the model trained on the fold's training queries, as its file says."""
    split = run.config.splits[0]
    rows = run.part(run.config.splits[0], "Fold1", "test")
    row = {q: i for i, q in enumerate(run.collection.query_ids)}
    document = {d: i for i, d in enumerate(run.collection.document_ids)}
    folder = run.folder / "models" / "by-query" / "ssi"
    scores = run.trained_column(split, run.config.models[1], folder)
    folds = run.folds(split)
    parts = train_parts(run.collection, folds, folds[0], split.inner_parts)
    model = LowRankSSI.load(scores.path(np.sort(np.concatenate(parts)), parts, 0))
    space = TermSpace.of(run.context, scores.recipe.min_document_frequency)
    expected = model.score(
        space.Q,
        space.D,
        [row[rows.query_ids[i]] for i in rows.query_index],
        [document[d] for d in rows.document_ids],
    )
    np.testing.assert_array_equal(rows.column("ssi"), expected)


def test_the_models_of_folds_are_kept_and_those_of_their_parts_are_not(run):
    """Those of parts have scored their rows, and are three times as many as the others."""
    folder = run.folder / "models" / "by-query"
    folds = {f"Fold{n}" for n in range(1, 6)}
    assert len(list((folder / "ssi").glob("*.safetensors"))) == len(folds)
    for model in ("ssi", "lsa"):
        others = [p for p in (folder / model).iterdir() if p.suffix != ".safetensors"]
        assert {p.name for p in others} == {".stage.json"} | {
            f"{fold}.{end}" for fold in folds for end in ("npy", "json")
        }
    assert len(list((run.folder / "models" / "all.splits" / "lsa").glob("*.safetensors"))) == 1


def test_articles_are_kept_together_by_group_splits(run):
    group = dict(zip(run.collection.query_ids, run.collection.query_groups, strict=True))
    split = next(split for split in run.config.splits if split.name == "by-article")
    parts = [run.part(split, "Fold2", p).query_ids for p in ("train", "vali", "test")]
    groups = [{group[q] for q in part} for part in parts]
    assert not groups[0] & groups[2]
    assert not groups[0] & groups[1]
    assert not groups[1] & groups[2]


def test_saved_rankers_give_the_run_s_scores(run):
    folder = run.folder / "systems" / "by-query" / "words_SSI"
    ranker = load_ranker(folder / "Fold3")
    rows = run.part(run.config.splits[0], "Fold3", "test")
    scores = ranker.predict(rows.select_columns(ranker.feature_names_))
    ours = pd.DataFrame(
        {"qid": [rows.query_ids[i] for i in rows.query_index], "docno": list(rows.document_ids)}
    ).assign(score=scores)
    best = ours.loc[ours.groupby("qid")["score"].idxmax()].set_index("qid")["score"]
    written = pd.read_csv(
        folder / "run.txt.gz", sep=" ", names=["qid", "q0", "docno", "rank", "score", "tag"]
    )
    first = written[written["rank"] == written.groupby("qid")["rank"].transform("min")]
    first = first.set_index("qid")["score"]
    np.testing.assert_allclose(first[best.index], best, rtol=1e-5)
    folds = [load_ranker(folder / f"Fold{n}").feature_importance() for n in range(1, 6)]
    mean = pd.concat(folds).groupby("column")["gain"].sum() / 5
    table = pd.read_csv(folder / "importance.csv").set_index("column")["gain"]
    assert table.is_monotonic_decreasing
    pd.testing.assert_series_equal(table.sort_index(), mean.sort_index())


@pytest.mark.parametrize("system", ["BM25", "words", "words_SSI"])
def test_written_runs_are_the_rankings_that_were_evaluated(run, system):
    """Ties included: evaluating the written run gives the written values."""
    folder = run.folder / "systems" / "by-query" / system
    values = pd.read_csv(folder / "per_query.csv", dtype={"qid": str}).set_index("qid")
    again = evaluate(run.qrels, read_run(folder / "run.txt.gz"), list(values.columns))
    pd.testing.assert_frame_equal(again, values, check_names=False, check_exact=True)


def test_a_further_measure_trains_no_ranker_again(run, config):
    """The values of all measures are those of the runs."""
    measures = ("MRR@5", *config.evaluation.measures)
    evaluation = config.evaluation.model_copy(update={"measures": measures})
    more = RankingStudy(config.model_copy(update={"evaluation": evaluation}), run.folder)
    assert to_do(more) == []
    before, after = (Findings(study, study.outputs[0]).per_query for study in (run, more))
    for name in ("BM25", "words"):  # without and with a ranker and a second fit
        known = before[name].columns
        pd.testing.assert_frame_equal(after[name][known], before[name], check_exact=True)
    ranking = read_run(more.outputs[0].first("BM25") / "run.txt.gz").query("rank <= 5")
    relevant = run.qrels.query("label > 0")
    found = ranking.merge(relevant).groupby("qid")["rank"].min().reindex(after["BM25"].index)
    np.testing.assert_allclose(after["BM25"]["MRR@5"], (1 / found).fillna(0))
    assert 0 < after["BM25"]["MRR@5"].mean() < 1


def test_a_further_family_trains_only_the_rankers_that_have_it(run, config):
    """A system that names single columns is made again, as any family might have them."""

    def to_make(*systems: SystemConfig) -> set[str]:
        more = {"columns": (FamilyConfig(family="letters"), *config.columns), "systems": systems}
        names = to_do(RankingStudy(config.model_copy(update=more), run.folder))
        return {name.split("/")[-1] for name in names if name.startswith(("models/", "systems/"))}

    assert to_make(*config.systems) == {"BM25"}
    systems = {system.name: system for system in config.systems}
    words = systems["words"]
    systems["words"] = words.model_copy(update={"columns": (*words.columns, "letters")})
    assert to_make(*systems.values()) == {"BM25", "words"}


def test_the_report_tells_verdict_definitions_and_settings(run):
    report = run.folder / "report"
    html = (report / "report.html").read_text(encoding="utf-8")
    summary = (report / "summary.txt").read_text(encoding="utf-8")
    for text in ("Unseen queries", "Unseen articles", "words+SSI"):
        assert text in html
        assert text in summary
    assert "before training (latent semantic indexing plus the tf-idf cosine)" in html
    assert "ssi, Unseen queries, first fold" in html
    assert "nearest_words: no document has absent" in html
    assert "accumulator_start" in html
    assert "commonaa" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    comparisons = pd.read_csv(report / "comparisons.csv")
    assert len(comparisons) == 2 * 7 * 4
    assert ((comparisons["p"] > 0) & (comparisons["p"] <= comparisons["p_corrected"])).all()


def test_refits_deal_other_folds_and_are_of_repeated_systems_only(run):
    folder = run.folder
    split = run.config.splits[0]
    first, second = run.folds(split), run.folds(split.refit(1))
    assert sorted(q for f in second for q in f.test) == sorted(q for f in first for q in f.test)
    assert {frozenset(f.test) for f in first} != {frozenset(f.test) for f in second}
    for kind, names in (("systems", {"words", "words_SSI", "SSI"}), ("models", {"ssi"})):
        assert {p.name for p in (folder / kind / "by-query.refit-1").iterdir()} == names
    rows = run.part(split.refit(1), "Fold1", "test")
    assert set(rows.query_ids) == set(second[0].test)
    assert rows.column_names[-1] == "ssi"


def test_refits_have_other_seeds_and_are_cached_one_by_one(run, config):
    """The third fit reuses the first two."""
    split, systems = run.config.splits[0], {s.name: s for s in run.config.all_systems}
    stages = [run.system_stage(split.refit(number), systems["words"]) for number in range(2)]
    assert [stage.inputs["seed"] for stage in stages] == [0, 1]
    rankers = [load_ranker(run.done(stage).path / "Fold1") for stage in stages]
    rankers.append(
        load_ranker(run.done(run.system_stage(split, systems["words, refit 1"])).path / "Fold1")
    )
    # That of the ranker, 4, and of the fit and the system.
    assert [ranker.get_params()["seed"] for ranker in rankers] == [4, 4 + 1, 4 + 1]
    more = [s.model_copy(update={"repeats": 3}) if s.name == "words" else s for s in config.systems]
    again = RankingStudy(config.model_copy(update={"systems": tuple(more)}), run.folder)
    assert to_do(again) == [
        name
        for split in ("by-query.refit-2", "by-article.refit-2")
        for name in (f"letor/{split}", f"systems/{split}/words", f"systems/{split}.share-0.5/words")
    ]


def test_the_seeds_of_file_system_and_fit_add_up(run, tmp_path, monkeypatch):
    seeds = []
    monkeypatch.setattr(
        "ltr_features.studies.kinds.ranking_stages.write_system",
        lambda path, system, *args, **options: seeds.append(system.seed),
    )
    other = RankingStudy(run.config.model_copy(update={"seed": 7}), run.folder)
    split, systems = other.config.splits[0], {s.name: s for s in other.config.all_systems}
    for fit, name in ((0, "words"), (1, "words"), (1, "words, refit 1")):
        other.system_stage(split.refit(fit), systems[name]).make(tmp_path)
    assert seeds == [7, 7 + 1, 7 + 1 + 1]


def test_the_report_has_means_over_refits_their_spread_and_the_groups(run):
    report, systems = run.folder / "report", run.folder / "systems"

    def means(name: str) -> np.ndarray:
        fits = [systems / f"by-query{fit}" / name for fit in ("", ".refit-1")]
        return np.array([pd.read_csv(f / "per_query.csv")["NDCG@10"].mean() for f in fits])

    table = pd.read_csv(report / "comparisons.csv")
    row = table[(table["system"] == "words+SSI") & (table["baseline"] == "words")].iloc[0]
    of_fits = means("words_SSI") - means("words")
    assert row["difference"] == pytest.approx(of_fits.mean())
    assert row["spread"] == pytest.approx(of_fits.std(ddof=1))
    assert (row["n_fits"], row["n_queries"], row["n_groups"]) == (2, 50, 25)
    once = table[(table["system"] == "words+LSA") & (table["baseline"] == "words")].iloc[0]
    assert once["n_fits"] == 2  # of the words; the other system is fitted once
    assert once["spread"] == pytest.approx(means("words").std(ddof=1))
    summary = unwrapped(report / "summary.txt")
    assert "The 50 queries belong to 25 groups" in summary
    values = pd.read_csv(report / "tables" / "per_query.csv")
    assert values["group"].nunique() == 25
    html = (report / "report.html").read_text("utf-8")
    assert "fitted once (“SSI”, “words”, “words+SSI”: 2 times)" in html


def test_a_file_of_groups_is_that_of_the_collection_for_tests_and_splits(run, config, tmp_path):
    """What no split by group is made of is not made again."""
    ids = run.collection.query_ids
    path = tmp_path / "groups.tsv"
    path.write_text("".join(f"{q}\thalf {i % 12}\n" for i, q in enumerate(ids)), "utf-8")
    named = config.model_copy(update={"groups": "groups.tsv"})
    grouped = RankingStudy(named, run.folder, tmp_path)
    assert grouped.groups == {q: f"half {i % 12}" for i, q in enumerate(ids)}
    group = grouped.groups
    for fold in grouped.folds(config.splits[1]):
        assert not {group[q] for q in fold.train} & {group[q] for q in fold.test}
    assert {name.split("/")[1].split(".")[0] for name in to_do(grouped)} == {"by-article"}
    path.write_text(f"{ids[0]}\talone\n", "utf-8")
    with pytest.raises(InputError, match="no group of 49 queries"):
        _ = RankingStudy(named, run.folder, tmp_path).collection


def test_folds_of_the_last_split_are_checked_before_a_model_is_trained(config, tmp_path):
    splits = (config.splits[0], config.splits[1].model_copy(update={"folds": 40}))
    study = RankingStudy(config.model_copy(update={"splits": splits}), tmp_path, threads=1)
    with pytest.raises(InputError, match=r"^split 'by-article': .* cannot be dealt into 40 parts"):
        study.run()
    assert not (tmp_path / "models").exists()


def test_turned_folds_train_on_other_queries_and_test_on_the_same():
    parts = [[f"q{p}{i}" for i in range(3)] for p in range(5)]
    folds = letor_rotation(parts)
    assert turned(folds, folds[0], 0) == Fold(
        "Fold1", parts[0] + parts[1] + parts[2], parts[3], parts[4]
    )
    other = turned(folds, folds[0], 1)
    assert (set(other.train), other.validation) == (set(parts[1] + parts[2] + parts[3]), parts[0])
    assert other.test == parts[4]
    assert turned(folds, folds[0], 4) == turned(folds, folds[0], 0)


def test_stage_notes_hold_the_inputs(run):
    note = json.loads((run.folder / "collection" / ".stage.json").read_text())
    corpus = (run.folder / "collection" / "corpus.jsonl").read_bytes()
    assert note["files"]["corpus.jsonl"] == sha256(corpus).hexdigest()
    dump = Path(run.config.collection.options["dump"])
    found = note["inputs"]["options"]["dump"]
    assert (found["name"], found["sha256"]) == (
        "topics.xml",
        sha256(dump.read_bytes()).hexdigest(),
    )
    assert str(dump.parent) not in json.dumps(note)  # the same dump elsewhere is the same


def test_the_report_says_which_columns_rank_alike_and_which_kinds_are_missing(run, config):
    folder = run.folder / "report"
    table = pd.read_csv(folder / "tables" / "column_correlation.csv")
    assert table["study"].unique().tolist() == [split.title for split in config.splits]
    first = table[table["study"] == config.splits[0].title].set_index("column")
    rows = run.part(run.config.splits[0], "Fold1", "test")
    assert first.index.tolist() == list(rows.column_names)
    # The model starts from LSA.
    assert first.loc["ssi", "lsa"] > 0.5
    assert first.loc["ssi", "ssi"] == 1
    kinds = pd.read_csv(folder / "tables" / "query_kinds.csv")
    expected = {"query", "words", "entities", "relevant documents", "overlap", "study"}
    assert set(kinds.columns) == expected
    assert {path.suffix for path in (folder / "figures").glob("*correlation*")} == {".svg", ".pdf"}


def test_measures_of_the_folds_files_are_those_of_the_report(run):
    """The files say which relevant documents and queries their rows lack."""
    values, lost = [], 0
    system = run.folder / "systems" / "by-query" / "everything"
    ranking = read_run(system / "run.txt.gz").set_index(["qid", "docno"])["score"]
    for number in range(1, 6):
        rows = run.part(run.config.splits[0], f"Fold{number}", "test")
        ids = zip(np.array(rows.query_ids)[rows.query_index], rows.document_ids, strict=True)
        scores = ranking.loc[list(ids)].to_numpy()
        values.append(evaluate(rows, scores, [parse_measure(m) for m in MEASURES.values()]))
        lost += rows.missing.n_relevant
    assert lost > 0
    reported = pd.read_csv(system / "per_query.csv", dtype={"qid": str}).set_index("qid")
    found = pd.concat(values)
    assert sorted(found.index) == sorted(reported.index)
    expected = reported.loc[found.index, list(MEASURES)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


MEASURES = {"NDCG@10": "ndcg@10", "MAP": "map", "P@10": "p@10"}
