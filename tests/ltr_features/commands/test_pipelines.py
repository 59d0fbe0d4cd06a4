"""From folds and a ranker on the command line to a pipeline that ranks."""

from __future__ import annotations

import ntpath
import os
import re
import shutil
import warnings
from dataclasses import replace
from itertools import chain
from pathlib import Path, PureWindowsPath

import numpy as np
import pytest
from dumps import dump_xml, page_xml
from folders import written
from toys import done, refused, run, topics
from typer.testing import CliRunner

from letor.column_names import read_rows
from letor.errors import LetorWarning
from letor.rankers.registry import load_ranker
from ltr_features import FeatureBuilder, ScoringPipeline, get_family
from ltr_features.cli import app
from ltr_features.columns.base import plain_settings
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.feature_files import built_of, workspace_notes
from ltr_features.text.analyzer import Analyzer

VSM = ("--family", "vsm")


def of_words(folder: Path) -> tuple[object, ...]:
    """The command that builds a pipeline of ``folder/workspace``, whose folds and ranker it makes,
    but for ``--out``."""
    folds, ranker = folder / "folds", folder / "ranker"
    build = ("--workspace", folder / "workspace", *VSM, "--folds", 3, "--out", folds)
    run("columns", "build", *build)
    rows = folds / "Fold1" / "train.txt"
    run("rank", "train", rows, "--ranker", "coordinate-ascent", "--out", ranker)
    return "pipeline", "build", folds, "--ranker", ranker


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("w") / "workspace"
    make_workspace(topics(), folder)
    return folder


@pytest.fixture
def folds(workspace, tmp_path):
    """Folds of words and a trained model, and rankers of the first and the second."""
    run(
        *f"columns build --workspace {workspace} --family letor46 --option letor46.k1=1.2 "
        "--family vsm --model s2net --param s2net.max_epochs=2 --param s2net.rank=4 "
        f"--candidates bm25.depth=30 --folds 4 --seed 3 --out {tmp_path / 'folds'}".split()
    )
    for number in (1, 2):
        train = tmp_path / "folds" / f"Fold{number}" / "train.txt"
        ranker = ("--param", "n_estimators=5", "--param", "min_data_in_leaf=5")
        run("rank", "train", train, *ranker, "--out", tmp_path / f"ranker{number}")
    return tmp_path / "folds"


@pytest.mark.parametrize("number", [1, 2])
def test_a_pipeline_scores_as_the_ranker_scores_the_rows_of_its_fold(folds, tmp_path, number):
    """With the models that the build kept: none is trained again."""
    before = written(folds / "models")
    said = done(
        "pipeline", "build", folds, "--ranker", tmp_path / f"ranker{number}", "--fold",
        f"Fold{number}", "--out", tmp_path / "service",
    )  # fmt: skip
    assert "lambdamart, 60 documents, 48 columns" in said
    assert written(folds / "models") == before
    pipeline = ScoringPipeline.load(tmp_path / "service")
    texts = dict(zip(topics().query_ids, topics().query_texts, strict=True))
    test = read_rows(folds / f"Fold{number}" / "test.txt")
    expected = load_ranker(tmp_path / f"ranker{number}").predict(test)
    for place, query in enumerate(test.query_ids):
        rows = np.flatnonzero(test.query_index == place)
        found = pipeline.score(texts[query], [test.document_ids[row] for row in rows])
        np.testing.assert_array_equal(found, expected[rows])
    assert len(pipeline.rank(next(iter(texts.values())), 60)) <= 30


def test_the_fold_is_the_one_of_the_rankers_rows(folds, tmp_path):
    """As its trained columns name it: another fold's models learned from other queries."""
    build = ("pipeline", "build", folds, "--ranker", tmp_path / "ranker2", "--out")
    said = refused(*build, tmp_path / "service", "--fold", "Fold1")
    assert "ranker2 was trained on rows of Fold2, not of Fold1; leave the option out" in said
    assert "has no fold ''" in refused(*build, tmp_path / "service", "--fold", "")
    run(*build, tmp_path / "service")
    test = read_rows(folds / "Fold2" / "test.txt")
    expected = load_ranker(tmp_path / "ranker2").predict(test)
    texts = dict(zip(topics().query_ids, topics().query_texts, strict=True))
    rows = np.flatnonzero(test.query_index == 0)
    pipeline = ScoringPipeline.load(tmp_path / "service")
    found = pipeline.score(texts[test.query_ids[0]], [test.document_ids[row] for row in rows])
    np.testing.assert_array_equal(found, expected[rows])


def test_columns_made_in_another_way_than_those_of_the_training_rows_are_told(folds, tmp_path):
    """By another fold's models, another analyzer or other parameters; before, in scores, too."""
    ranker, folds2 = tmp_path / "ranker1", tmp_path / "folds2"
    with warnings.catch_warnings():
        warnings.simplefilter("error", LetorWarning)
        run("rank", "score", ranker, folds / "Fold1" / "test.txt")
    which = r"1 column \(s2net\) made in another way .* with fold = 'Fold2' instead of 'Fold1'"
    with pytest.warns(LetorWarning, match=f"rows to score: {which}"):
        run("rank", "score", ranker, folds / "Fold2" / "test.txt")
    few = ("--vali", folds / "Fold2" / "vali.txt", "--param", "n_estimators=2")
    said = run("rank", "train", folds / "Fold1" / "train.txt", *few, "--out", tmp_path / "other")
    assert re.search(f"validation rows: {which}", said.stderr)

    make_workspace(topics(), tmp_path / "stemmed", analyzer=Analyzer(stemmer="english"))
    again = "--family letor46 --family vsm --model s2net --param s2net.max_epochs=1 --folds 4"
    run("columns", "build", "--workspace", tmp_path / "stemmed", *again.split(), "--out", folds2)
    which = (
        r"48 columns \(tf_body, .* with text analysis = 'stemmer=english' instead of 'defaults', "
        r"k1 = 2.5 instead of 1.2, rank = 100 instead of 4"
    )
    with pytest.warns(LetorWarning, match=f"rows to score: {which}"):
        run("rank", "score", ranker, folds2 / "Fold1" / "test.txt")
    with pytest.warns(LetorWarning, match="the pipeline: 48 columns"):
        run("pipeline", "build", folds2, "--ranker", ranker, "--out", tmp_path / "service")


def test_a_file_that_was_moved_is_not_another_setting():
    at = ("vectors", "a/x.vec"), ("vectors", Path("b/x.vec")), ("vectors", "x.vec")
    assert {plain_settings(dict([pair]))["vectors"] for pair in at} == {"x.vec"}
    assert plain_settings({"folder": "a", "threads": 2, "k1": 1.2, "scales": (1.0,)}) == {"k1": 1.2}


@pytest.mark.parametrize("options", ["--by-group", ""])
def test_the_same_queries_are_held_out_together(tmp_path, options):
    """Whether or not folds keep groups: no model is trained again."""
    grouped = replace(topics(), query_groups=[str(q // 2) for q in range(24)])
    make_workspace(grouped, tmp_path / "workspace")
    run(
        *f"columns build --workspace {tmp_path / 'workspace'} --model s2net --param "
        f"s2net.max_epochs=1 --param s2net.rank=4 --folds 4 {options} --out "
        f"{tmp_path / 'folds'}".split()
    )
    before = sorted(path.name for path in (tmp_path / "folds" / "models").rglob("*"))
    train = tmp_path / "folds" / "Fold1" / "train.txt"
    run("rank", "train", train, "--ranker", "coordinate-ascent", "--out", tmp_path / "ranker")
    pipeline = ("--ranker", tmp_path / "ranker", "--out", tmp_path / "service")
    run("pipeline", "build", tmp_path / "folds", *pipeline)
    assert sorted(path.name for path in (tmp_path / "folds" / "models").rglob("*")) == before


def test_folds_and_workspace_may_move_together(workspace, tmp_path):
    shutil.copytree(workspace, tmp_path / "a" / "workspace")
    of_words(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    pipeline = ("--ranker", tmp_path / "b" / "ranker", "--out", tmp_path / "service")
    run("pipeline", "build", tmp_path / "b" / "folds", *pipeline)
    assert ScoringPipeline.load(tmp_path / "service").ranker.name == "coordinate-ascent"


def test_folds_name_a_workspace_of_windows(workspace, tmp_path, monkeypatch):
    """By slashes, so that both may move to another system; on another drive by its whole path."""
    with monkeypatch.context() as windows:
        windows.setattr("ltr_features.feature_files.Path", PureWindowsPath)
        windows.setattr(os.path, "relpath", lambda *_: ntpath.relpath(r"C:\w\x", r"C:\folds"))
        assert workspace_notes(workspace, tmp_path)["workspace"] == "../w/x"
    monkeypatch.setattr(os.path, "relpath", lambda *_: ntpath.relpath(r"C:\w", r"D:\folds"))
    notes = workspace_notes(workspace, tmp_path)
    assert built_of(tmp_path, notes).folder == workspace


def test_a_workspace_that_was_made_again_is_told(tmp_path):
    """Its queries and documents need not be those that ranker and models were trained on."""
    make_workspace(topics(), tmp_path / "workspace")
    build = (*of_words(tmp_path), "--out", tmp_path / "service")
    make_workspace(topics(), tmp_path / "workspace")  # the same
    run(*build)
    make_workspace(topics(50), tmp_path / "workspace")
    assert "workspace has changed since" in refused(*build)


def test_what_makes_no_pipeline_is_named(folds, workspace, tmp_path):
    build = ("pipeline", "build", folds, "--out", tmp_path / "service", "--ranker")
    assert "no fold 'Fold9'" in refused(*build, tmp_path / "ranker1", "--fold", "Fold9")
    other = tmp_path / "other"
    run("columns", "build", "--workspace", workspace, *VSM, "--folds", 4, "--out", other)
    message = refused("pipeline", "build", other, *build[3:], tmp_path / "ranker1")
    assert "the ranker needs the columns" in message
    assert "it says how `columns build` made folds" in refused(
        "pipeline", "build", workspace, *build[3:], tmp_path / "ranker1"
    )
    assert not (tmp_path / "service").exists()


def checked(folder: Path) -> tuple[int, str]:
    """The exit status of ``validate`` and what it says."""
    said = CliRunner().invoke(app, ["validate", str(folder)])
    return said.exit_code, said.output


def test_files_that_a_pipeline_reads_from_their_place_are_named(workspace, tmp_path):
    numbers, rows = tmp_path / "n.csv", tmp_path / "folds" / "Fold1" / "train.txt"
    ids = open_workspace(workspace).collection.document_ids
    numbers.write_text("id,price\n" + "".join(f"{name},{n}\n" for n, name in enumerate(ids)))
    run("columns", "build", "--workspace", workspace, *VSM, "--family", "numbers", "--option",
        f"numbers.file={numbers}", "--folds", 3, "--out", tmp_path / "folds")  # fmt: skip
    run("rank", "train", rows, "--ranker", "coordinate-ascent", "--out", tmp_path / "r")
    built = run("pipeline", "build", tmp_path / "folds", "--ranker", tmp_path / "r", "--out",
                tmp_path / "service")  # fmt: skip
    assert built.stderr == f"note: it reads {numbers}: keep this there as it is\n"

    service = tmp_path / "service"
    assert checked(service) == (0, f"{service}: all files are as they were written\n")
    numbers.write_text(numbers.read_text() + "new,7\n")
    assert checked(service) == checked(service / "features") == (2, f"{numbers}: changed\n")
    numbers.unlink()
    assert checked(service) == (2, f"{numbers}: missing\n")


def test_files_of_a_knowledge_base_that_a_pipeline_reads_are_checked(tmp_path):
    (tmp_path / "dump.xml").write_bytes(dump_xml([page_xml("Fox", "red", page_id=1)]))
    base, saved = tmp_path / "base", tmp_path / "features"
    run("wikipedia", tmp_path / "dump.xml", "--out", base)
    family = get_family("entity-overlap", knowledge=base)
    FeatureBuilder([family]).fit(topics()).save(saved)
    assert checked(saved) == (0, f"{saved}: all files are as they were written\n")
    path = base / "sense_links.npy"
    path.write_bytes(path.read_bytes() + b"0")
    assert checked(saved) == (2, f"{path}: changed\n")


@pytest.mark.parametrize("n", [4, 5])
def test_a_build_that_writes_nothing_leaves_the_earlier_folds(workspace, folds, tmp_path, n):
    before = written(folds)
    (tmp_path / "dump.xml").write_bytes(dump_xml([page_xml("Fox", "red", page_id=1)]))
    (tmp_path / "notes.jsonl").write_text("")
    entities = {"dump": "dump.xml", "linker": "stored", "annotations": "notes.jsonl"}
    named = (("--option", f"entity-overlap.{k}={tmp_path / v if '.' in v else v}")
             for k, v in entities.items())  # fmt: skip
    build = ("--workspace", workspace, "--folds", n, "--out", folds)
    said = refused("columns", "build", *build, "--family", "entity-overlap", *chain(*named))
    assert "no annotations for" in said
    assert written(folds) == before
    ranker = ("--ranker", tmp_path / "ranker1", "--fold", "Fold1")
    run("pipeline", "build", folds, *ranker, "--out", tmp_path / "service")


def test_models_that_the_build_did_not_keep_are_told(folds, tmp_path):
    """As those of an earlier version, whose files have other names."""
    build = ("pipeline", "build", folds, "--ranker", tmp_path / "ranker1", "--out")
    assert "trained anew" not in run(*build, tmp_path / "service").output
    for path in (folds / "models").iterdir():
        path.rename(path.with_stem(path.stem + "0"))
    assert "did not have were trained anew" in run(*build, tmp_path / "another").output


def test_folds_of_an_unfinished_build_are_named(folds, tmp_path):
    build = ("pipeline", "build", folds, "--ranker", tmp_path / "ranker1", "--fold", "Fold1")
    (folds / "build.json").unlink()
    assert "not finished, or was of an earlier" in refused(*build, "--out", tmp_path / "service")


def test_a_workspace_of_an_earlier_version_without_digests_makes_folds_and_pipelines(tmp_path):
    make_workspace(topics(), tmp_path / "workspace")
    (tmp_path / "workspace" / "digests.json").unlink()
    build = of_words(tmp_path)
    run(*build, "--out", tmp_path / "service")
    make_workspace(topics(6), tmp_path / "workspace")
    (tmp_path / "workspace" / "digests.json").unlink()
    assert "has changed since" in refused(*build, "--out", tmp_path / "another")


def test_folds_of_appended_columns_are_refused(folds, workspace, tmp_path):
    counted, out = tmp_path / "counted", tmp_path / "appended"
    run("columns", "build", "--workspace", workspace, *VSM, "--folds", 4, "--out", counted)
    run("columns", "append", counted, "--workspace", workspace, "--family", "letters", "--out", out)
    build = ("pipeline", "build", out, "--ranker", tmp_path / "ranker1", "--fold", "Fold1")
    assert "of `columns append`" in refused(*build, "--out", tmp_path / "service")


def test_given_scores_make_no_pipeline(workspace, tmp_path):
    collection = open_workspace(workspace).collection
    scores, folds = tmp_path / "s.tsv", tmp_path / "given"
    query, document = collection.query_ids[0], collection.document_ids[0]
    scores.write_text(f"qid\tdocno\ts\n{query}\t{document}\t1\n")
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--family", "scores")
    run(*build, "--option", f"scores.files.s={scores}", "--folds", 4, "--out", folds)
    train = ("rank", "train", folds / "Fold1" / "train.txt", "--out", tmp_path / "ranker")
    run(*train)
    service = tmp_path / "service"
    build = ("pipeline", "build", folds, "--out", service, "--ranker", tmp_path / "ranker")
    message = refused(*build)
    assert "column family scores: new queries have no given scores or vectors" in message
    assert not service.exists()
    run(*train, "--without", "s")
    assert done(*build).endswith(f" documents, 1 column: {service}\n")
    assert ScoringPipeline.load(service).features.column_names == ["vsm"]


def test_a_server_is_given_an_address(tmp_path):
    """An empty one, such as that of a variable that is not set, would mean all of the machine's."""
    assert refused("serve", tmp_path, "--host", "").startswith("--host is empty; name an address")


def test_places_in_the_ranking_are_explained(tmp_path):
    make_workspace(topics(), tmp_path / "workspace")
    run(*of_words(tmp_path), "--out", tmp_path / "p")
    explain = ("pipeline", "explain", tmp_path / "p", "topic1word1")
    texts = dict(zip(topics().document_ids, topics().fields["body"], strict=True))
    ranking = ScoringPipeline.load(tmp_path / "p").rank("topic1word1", 100)
    lines = done(*explain, "--count", 2).splitlines()
    best = ranking.itertuples()
    for line, added in (lines[:2], lines[2:4]):
        row = next(best)
        start, text, score = line.split("'")
        assert (start, score) == (f"{row.rank}. {row.docno}, ", f", score {row.score:.4f}")
        assert texts[row.docno].startswith(text)
        name, value, contribution = added.split()
        assert name == "vsm"
        assert float(value) > 0
        assert float(contribution) == pytest.approx(row.score - ranking["score"].mean(), abs=1e-4)
    mean = f"{ranking['score'].mean():.4f}, the mean of {len(ranking)} candidates."
    assert lines[4:] == [f"Sums are scores minus {mean}"]
    last = ranking.iloc[-1]
    assert done(*explain, "--document", last["docno"]).startswith(
        f"{len(ranking)}. {last['docno']}"
    )
    assert "has no document 'gone'" in refused(*explain, "--document", "gone")
    both = refused(*explain, "--document", last["docno"], "--count", 3)
    assert "--count is for the best documents, and --document names others" in both
    others = set(topics().document_ids) - set(ranking["docno"])
    not_there = f"{min(others)!r} is not among the query's {len(ranking)} candidates"
    assert not_there in refused(*explain, "--document", min(others))
    nothing = done("pipeline", "explain", tmp_path / "p", "unheard")
    assert nothing == "no candidates for 'unheard': no document is found by bm25\n"
