"""Folds in Parquet: the rows and values of folds in memory, made in any memory and on workers."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from folders import contents as files
from folders import written as times
from random_collection import random_collection
from same_rows import assert_same
from toys import refused, run
from typer.testing import CliRunner

from letor.column_names import read_rows, write_rows
from letor.errors import InputError
from letor.fold_files import read_folds
from letor.folds import k_fold
from letor.lock import locked
from letor.parquet import read_ids, read_parquet
from ltr_features import feature_table
from ltr_features.blocks import write_columns
from ltr_features.candidates import choose_candidates
from ltr_features.cli import app
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.registry import get_family
from ltr_features.feature_table import build_columns, learned_columns
from ltr_features.stored_folds import PARTS, write_folds

BM25, POOLED = {"bm25": {"depth": 5}}, {"judged": {}, "bm25": {"depth": 3}}
SSI = {"rank": 3, "max_epochs": 2, "batch_size": 8, "n_negatives": 4, "seed": 0}
MODELS = [LearnedColumn("lsa", "lsi", {"rank": 4, "seed": 0}), LearnedColumn("ssi", "ssi", SSI)]
FROM_LISTS = [LearnedColumn("lists", "ssi", {**SSI, "list_share": 0.5})]


def collection(n_queries=300):
    return random_collection(n_queries, 1500)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return make_workspace(collection(), tmp_path_factory.mktemp("folds") / "workspace")


def few(monkeypatch):
    """Row groups of 1024 rows, and scores that are compared a few at a time."""
    monkeypatch.setattr("letor.parquet_rows._BLOCK_BYTES", 1)
    monkeypatch.setattr("letor.parquet_parts._BLOCK_BYTES", 1)
    monkeypatch.setattr("ltr_features.columns.out_of_fold._BLOCK", 7)


def folds_of(context, k=4):
    return k_fold(context.collection.query_ids, k, seed=1)


def written(context, candidates, columns, folder, memory, k=4):
    """The provenance of the folds that are written."""
    found = write_columns(
        context, candidates, [get_family("vsm")], folder / "columns.parquet", memory=memory
    )
    made = write_folds(
        context, columns, folds_of(context, k), folder, missing=found.missing, memory=memory
    )
    return {fold.fold.name: fold.provenance for fold in made}


@pytest.mark.parametrize(
    ("candidates", "columns"),
    [(BM25, MODELS), (POOLED, MODELS), (BM25, FROM_LISTS), (BM25, [])],
    ids=["bm25", "two sources", "from lists", "no model"],
)
def test_folds_are_those_in_memory_in_any_memory(
    workspace, candidates, columns, tmp_path, monkeypatch
):
    context = open_workspace(workspace)
    found = choose_candidates(context, candidates)
    table = build_columns(context, found.pairs, [get_family("vsm")], origins=found.origins)
    expected = list(
        learned_columns(context, table, columns, folds_of(context), folder=tmp_path / "models")
    )
    few(monkeypatch)
    for memory in (140 * feature_table._SCORED_BYTES, 2**30):
        told = written(context, candidates, columns, tmp_path / str(memory), memory)
        assert told == {fold.fold.name: fold.provenance for fold in expected}
    for fold in expected:
        for (part, name), rows in zip(PARTS.items(), fold.parts(), strict=True):
            path = tmp_path / "14000" / fold.fold.name / f"{name}.parquet"
            assert_same(read_parquet(path), rows)
            (places,) = np.nonzero(fold.has(part))
            np.testing.assert_array_equal(pq.read_table(path)["row"], places)
            mapped = read_parquet(path, memory=1)
            assert isinstance(mapped.X, np.memmap)
            assert_same(mapped, rows)
    assert files(tmp_path / str(2**30)) == files(tmp_path / "14000")
    assert pq.ParquetFile(tmp_path / "14000" / "columns.parquet").num_row_groups > 1


def test_ids_come_some_queries_at_a_time(workspace, tmp_path, monkeypatch):
    few(monkeypatch)
    context, path = open_workspace(workspace), tmp_path / "columns.parquet"
    write_columns(context, BM25, [get_family("vsm")], path)
    whole, blocks = read_parquet(path), list(read_ids(path))
    assert len(blocks) == pq.ParquetFile(path).num_row_groups > 1
    assert [query for rows in blocks for query in rows.query_ids] == whole.query_ids
    assert [name for rows in blocks for name in rows.document_ids] == list(whole.document_ids)
    np.testing.assert_array_equal(np.concatenate([rows.y for rows in blocks]), whole.y)


def test_what_was_made_before_is_used_and_what_is_of_other_rows_is_not(workspace, tmp_path):
    context = open_workspace(workspace)
    columns, folder = MODELS[1:], tmp_path / "folds"
    found = write_columns(context, BM25, [get_family("vsm")], folder / "columns.parquet")
    options = {"missing": found.missing, "memory": 2**20}
    made = write_folds(context, columns, folds_of(context), folder, **options)
    next(made)
    made.close()  # as if it were killed
    models = times(folder / "models")
    assert models
    read_parquet(folder / "Fold1" / "test.parquet")
    written(context, BM25, columns, folder, 2**20)
    assert times(folder / "models").items() >= models.items()
    whole = files(folder)
    assert {f"Fold{i}/{part}.parquet" for i in (1, 2, 3, 4) for part in PARTS.values()} <= set(
        whole
    )
    written(context, BM25, columns, tmp_path / "at once", 2**20)
    assert whole == files(tmp_path / "at once")

    write_columns(context, {"bm25": {"depth": 4}}, [get_family("vsm")], folder / "columns.parquet")
    with pytest.raises(
        InputError, match=r"vali\.parquet: its rows refer to another .*build the folds"
    ):
        read_parquet(folder / "Fold1" / "vali.parquet")
    made = write_folds(context, columns, folds_of(context), folder, **options)
    next(made)
    assert [p.parent.name for p in folder.rglob("test.parquet")] == ["Fold1"]
    (folder / "columns.parquet").unlink()
    with pytest.raises(InputError, match=r"vali\.parquet: a part of a fold, .*columns\.parquet"):
        read_parquet(folder / "Fold1" / "vali.parquet")


def test_folds_without_models_are_one_data_set(workspace, tmp_path):
    context = open_workspace(workspace)
    written(context, BM25, [], tmp_path, 2**20)
    data, folds = read_folds(tmp_path)
    whole = read_parquet(tmp_path / "columns.parquet")
    for query in whole.query_ids[::50]:
        assert data.select_queries([query]).X.tobytes() == whole.select_queries([query]).X.tobytes()
    assert len(data) == len(whole)
    assert [set(fold.test) for fold in folds] == [set(fold.test) for fold in folds_of(context)]


# --- by the command line


def build(workspace, *more):
    return ("columns", "build", "--workspace", workspace, "--family", "letor46", "--model", "ssi",
            "--param", "ssi.rank=3", "--param", "ssi.max_epochs=2", "--depth", 5, "--folds", 4,
            *more)  # fmt: skip


@pytest.fixture(scope="module")
def both(workspace, tmp_path_factory):
    """A folder with the same folds in text and in Parquet, and what was said of them."""
    folder = tmp_path_factory.mktemp("both")
    said = [
        run(*build(workspace, "--out", folder / "text")),
        run(*build(workspace, "--format", "parquet", "--memory", "1MiB", "--out", folder / "p")),
    ]
    return folder, said


def test_folds_in_parquet_are_those_in_text(both, tmp_path):
    folder, said = both
    for stream in ("stdout", "stderr"):
        of_text, of_parquet = (getattr(result, stream) for result in said)
        assert of_text.replace(str(folder / "text"), str(folder / "p")) == of_parquet
    for part in ("train", "vali", "test"):
        run("convert", folder / "p" / "Fold2" / f"{part}.parquet", tmp_path / f"{part}.txt")
    assert files(tmp_path) == files(folder / "text" / "Fold2")
    models = "models"
    assert files(folder / "p" / models) == files(folder / "text" / models)


@pytest.mark.parametrize("ranker", ["lambdamart", "coordinate-ascent"])
def test_a_ranker_is_the_same_of_both(both, tmp_path, ranker):
    folder, _ = both
    few = "n_estimators=5" if ranker == "lambdamart" else "n_sweeps=1"
    for kind, ending, memory in (
        ("text", "txt", ()), ("p", "parquet", ()), ("p", "parquet", ("--memory", "1MiB")),
    ):  # fmt: skip
        fold, out = folder / kind / "Fold1", tmp_path / f"{kind}{len(memory)}"
        run("rank", "train", fold / f"train.{ending}", "--vali", fold / f"vali.{ending}", *memory,
            "--ranker", ranker, "--param", few, "--out", out)  # fmt: skip
        run("rank", "score", out, fold / f"test.{ending}", "--out", out / "scores.txt")
    assert files(tmp_path / "text0") == files(tmp_path / "p0") == files(tmp_path / "p2")
    measured = run(
        "measure", folder / "p/Fold1/test.parquet", "--scores", tmp_path / "p0/scores.txt"
    )
    assert "NDCG@5" in run("measure", folder / "p/Fold1/test.parquet", "--scores",
                           tmp_path / "p0/scores.txt", "--cutoff", 5).stdout  # fmt: skip
    assert "without a row" in measured.stdout


def incomplete(folder):
    result = CliRunner().invoke(app, ["validate", str(folder)], catch_exceptions=False)
    assert result.exit_code == 2
    return result.stdout


@pytest.mark.parametrize("kind", ["p", "text"])
def test_validate_tells_which_parts_of_folds_are_there(both, tmp_path, kind):
    out, suffix = tmp_path / "folds", {"p": "parquet", "text": "txt"}[kind]
    shutil.copytree(both[0] / kind, out)
    said = run("validate", out).stdout
    assert f"Fold1: train.{suffix}, vali.{suffix}, test.{suffix}\n" in said
    assert "all parts are there" in said
    (out / ".lock").write_text("{}")
    assert "a build is going on there, or ended without finishing" in incomplete(out)
    (out / ".lock").unlink()
    if kind == "p":
        (out / "columns.parquet").rename(tmp_path / "c")
        assert "train.parquet: a part of a fold, whose rows are in " in refused("validate", out)
        (tmp_path / "c").rename(out / "columns.parquet")
    (out / "Fold2" / f"vali.{suffix}").unlink()
    shutil.rmtree(out / "Fold1")
    said = incomplete(out)
    assert "Fold1: train, validation, test missing\n" in said
    assert f"Fold2: train.{suffix}, test.{suffix}; validation missing\n" in said
    assert "folds is incomplete: each fold needs training, validation and test rows" in said


def test_validate_reads_the_parts_of_data_sets(tmp_path):
    for part in "12345":
        (tmp_path / f"S{part}.txt").write_text(f"1 qid:{part} 1:1\n0 qid:{part} 1:2\n")
    assert "5 folds, all parts are there" in run("validate", tmp_path).stdout
    shutil.copy(tmp_path / "S1.txt", tmp_path / "S4.txt")
    assert "query '1' is in " in refused("validate", tmp_path)


def test_validate_tells_where_folds_do_not_fit_each_other(tmp_path):
    def write(fold, train, vali, test):
        (tmp_path / f"Fold{fold}").mkdir(exist_ok=True)
        for part, text in (("train", train), ("vali", vali), ("test", test)):
            (tmp_path / f"Fold{fold}" / f"{part}.txt").write_text(text)

    a, b, c = (f"1 qid:{query} 1:1\n" for query in "abc")
    write(1, a, b, c)
    write(2, b, c, a)
    assert run("validate", tmp_path).stdout.splitlines()[2:] == [
        f"{tmp_path}: 2 folds, all parts are there"
    ]
    write(2, a, b, c)
    said = run("validate", tmp_path).stdout
    assert "Fold2: its test query c is a test query of" in said
    write(2, b, c, a.replace("1:1", "1:2"))
    assert "note: " in (said := run("validate", tmp_path).stdout)
    assert "Fold2/test.txt: query a has other rows than in" in said
    write(2, b, c, c + a)
    assert "query 'c' is in test and already in validation" in refused("validate", tmp_path)
    write(2, b, c, "1 qid:a 1:1 2:1\n")
    assert "Fold2/test.txt has 2 columns" in refused("validate", tmp_path)


def test_workers_make_the_same_folds(both, workspace, tmp_path, workers):
    more = ("--format", "parquet", "--scheduler", workers.scheduler_address)
    run(*build(workspace, *more, "--out", tmp_path / "there"))
    assert files(tmp_path / "there") == files(both[0] / "p")


def test_the_blocks_of_two_builds_do_not_mix(workspace, tmp_path):
    rows = ("columns", "build", "--workspace", workspace, "--family", "vsm")
    out, workers = tmp_path / "new" / "rows.parquet", ("--scheduler", "local:1")
    run(*rows, *workers, "--out", out)
    before = files(out.parent)
    with locked(out):
        said = refused(*rows, *workers, "--out", out)
        assert "rows.parquet: a run is going on there (process " in said
        run(*rows, "--out", out)
    assert files(out.parent) == before == {"rows.parquet": out.read_bytes()}


def test_folds_of_two_builds_do_not_mix(both, workspace, tmp_path, monkeypatch):
    out = tmp_path / "text"
    shutil.copytree(both[0] / "text", out)
    before = files(out)
    with locked(out):
        assert "a run is going on there" in refused(*build(workspace, "--out", out))
    assert {**files(out), ".locked": b""} == {**before, ".locked": b""}

    def full_at_the_second_fold(data, path, **options):
        if path.parent.name == "Fold2":
            raise InputError("no space left")
        write_rows(data, path, **options)

    monkeypatch.setattr("letor.column_names.write_rows", full_at_the_second_fold)
    assert "no space left" in refused(*build(workspace, "--seed", 1, "--out", out))
    assert before.items() <= files(out).items()
    # Fold1 alone would be read as a data set, and an empty one be in the way of other folds.
    assert "no space left" in refused(*build(workspace, "--out", tmp_path / "first"))
    assert not list((tmp_path / "first").glob("Fold*"))


def test_what_cannot_be_is_refused(both, workspace, tmp_path):
    said = refused(*build(workspace, "--memory", "1GiB", "--out", tmp_path / "x"))
    assert "folds by --format parquet" in said
    rows = ("columns", "build", "--workspace", workspace, "--family", "vsm")
    assert "--format is for folds" in refused(
        *rows, "--format", "parquet", "--out", tmp_path / "x.parquet"
    )
    folder, _ = both
    for other, given in (("text", ("--format", "parquet")), ("p", ())):
        assert "has Fold1/train." in refused(*build(workspace, *given, "--out", folder / other))
    twice = ("--family", "vsm", "--model", "lsi", "--model", "lsi")
    assert "two columns are called" in refused(*rows, *twice, "--out", tmp_path / "x")
    assert "columns.parquet" in " ".join(run("columns", "build", "--help").stdout.split())
    assert "Fold1/train.parquet" in run("rank", "train", "--help").stdout
    assert not list(tmp_path.iterdir())


def test_damaged_files_are_refused_by_name(both, tmp_path):
    shutil.copytree(both[0] / "p", tmp_path / "p")
    part, rows = tmp_path / "p" / "Fold1" / "train.parquet", tmp_path / "p" / "columns.parquet"
    for path in (part, rows):
        whole = path.read_bytes()
        for damaged in (b"", whole[:100], whole[:-50], whole[: len(whole) // 2]):
            path.write_bytes(damaged)
            with pytest.raises(InputError, match=path.name):
                read_rows(part)
        path.write_bytes(b"PAR1" + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
        with pytest.raises(InputError, match=path.name):
            read_rows(part)
        path.write_bytes(whole)
    read_rows(part)


def test_validate_reads_folds_with_values_that_are_not_finite(tmp_path):
    for part in "123":
        (tmp_path / f"S{part}.txt").write_text(f"1 qid:{part} 1:1.797e308\n0 qid:{part} 1:2\n")
    assert "3 folds, all parts are there" in run("validate", tmp_path).stdout
