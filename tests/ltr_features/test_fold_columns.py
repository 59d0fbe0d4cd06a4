"""Columns of trained models for the files of an existing data set: leak-free, byte for byte."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from letor.column_names import read_rows, write_rows
from letor.errors import InputError, LetorWarning
from letor.fold_files import read_folds
from ltr_base.machine import is_temporary, temporary_paths
from ltr_features.cli import app
from ltr_features.columns.context import ColumnContext, make_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.registry import get_family
from ltr_features.fold_columns import FoldRows
from ltr_features.text.collection import Collection, Judgements
from ssi_models import OPCA

N_QUERIES, N_DOCUMENTS, N_ROWS, N_FOLDS = 40, 50, 10, 4
#: Nothing is chosen by held-out queries, so that labels act through pairs alone.
MODEL = LearnedColumn("opca", OPCA(rank=6, word_weight=0.5))


@pytest.fixture(scope="module")
def collection():
    """Queries and documents of five subjects, which share no word; nothing is judged. A last
    document, which has no row, makes all words of queries known."""
    rng = np.random.default_rng(0)

    def text(subject, side, n):
        return " ".join(f"{side}{subject}x{i}" for i in rng.integers(8, size=n))

    known = " ".join(f"query{subject}x{i}" for subject in range(5) for i in range(8))

    return Collection(
        name="subjects",
        document_ids=[*(f"d{i}" for i in range(N_DOCUMENTS)), "words"],
        fields={"body": [*(text(i % 5, "doc", 12) for i in range(N_DOCUMENTS)), known]},
        query_ids=[f"q{i}" for i in range(N_QUERIES)],
        query_texts=[text(i % 5, "query", 4) for i in range(N_QUERIES)],
        judgements=Judgements.none(),
    )


def lines_of(query, flipped=False):
    rng = np.random.default_rng(query)
    for document in rng.permutation(N_DOCUMENTS)[:N_ROWS].tolist():
        label = int((document % 5 == query % 5) != flipped)
        yield f"{label}  qid:q{query} 1:{rng.random():.6f} 3:0.50 # docid = d{document}\t x\r\n"


def write_parts(folder, flipped=None):
    """S1.txt to S4.txt; the labels of one query may be wrong."""
    folder.mkdir(exist_ok=True)
    for part in range(N_FOLDS):
        queries = range(part, N_QUERIES, N_FOLDS)
        lines = [line for q in queries for line in lines_of(q, q == flipped)]
        (folder / f"S{part + 1}.txt").write_text("".join(lines), newline="")
    return folder


def write_folds(folder, flipped=None):
    """The same in Fold1 to Fold4; lines of queries may alternate."""
    parts = write_parts(folder.with_name(folder.name + "-parts"), flipped)
    texts = [(parts / f"S{i + 1}.txt").read_bytes() for i in range(N_FOLDS)]
    for fold in range(N_FOLDS):
        turn = [texts[(fold + i) % N_FOLDS] for i in range(N_FOLDS)]
        home = folder / f"Fold{fold + 1}"
        home.mkdir(parents=True)
        for name, text in (("train", b"".join(turn[:-2])), ("vali", turn[-2]), ("test", turn[-1])):
            (home / f"{name}.txt").write_bytes(text)
    return folder


def append(collection, folder, out, **options):
    data = FoldRows.read(folder, ColumnContext.of(collection), **options)
    made = data.columns([MODEL], [get_family("vsm")])
    for fold, columns in zip(data.folds, made, strict=True):
        data.write(fold, columns, out)
    return data


def values_of(out, column="opca"):
    """The column by fold, part, query and document."""
    found = {}
    for path in sorted(out.rglob("*.txt")):
        rows = read_rows(path)
        ids = zip(np.array(rows.query_ids)[rows.query_index], rows.document_ids, strict=True)
        keys = [(path.parent.name, path.stem, *pair) for pair in ids]
        found |= dict(zip(keys, rows.column(column).tolist(), strict=True))
    return found


def test_old_bytes_stay(collection, tmp_path):
    source, out = write_folds(tmp_path / "a"), tmp_path / "b"
    append(collection, source, out)
    files = sorted(source.rglob("*.txt"))
    assert len(files) == 3 * N_FOLDS
    for path in files:
        new = (out / path.relative_to(source)).read_bytes()
        assert re.sub(rb"4:\S+ 5:\S+ (?=#)", b"", new) == path.read_bytes()
        assert new.count(b" 5:") == len(path.read_bytes().splitlines())
    assert read_rows(out / "Fold1/test.txt").column_names == ["1", "2", "3", "vsm", "opca"]


@pytest.mark.parametrize("flipped", [0, 17])
def test_no_row_is_scored_by_a_model_that_saw_its_label(collection, tmp_path, flipped):
    """Wrong labels of a query change scores of others, in folds that train on it, but not its own,
    in any part of any fold."""
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    append(collection, write_folds(tmp_path / "a"), right)
    append(collection, write_folds(tmp_path / "b", flipped), wrong)
    before, after = values_of(right), values_of(wrong)
    changed = {key[2] for key in before if before[key] != after[key]}
    assert f"q{flipped}" not in changed
    assert len(changed) > N_QUERIES / 2
    untrained = {key[0] for key in before if key[1] != "train" and key[2] == f"q{flipped}"}
    assert not any(before[k] != after[k] for k in before if k[0] in untrained)


def test_models_learn_from_the_labels_of_the_rows(collection, tmp_path):
    out = tmp_path / "b"
    append(collection, write_folds(tmp_path / "a"), out)
    for part in ("train", "test"):
        rows = read_rows(out / f"Fold2/{part}.txt")
        values = rows.column("opca")
        assert values[rows.y == 1].mean() > values[rows.y == 0].mean() + 0.2


def test_parts_become_folds_with_the_same_columns(collection, tmp_path):
    append(collection, write_folds(tmp_path / "a"), tmp_path / "of-folds")
    append(collection, tmp_path / "a-parts", tmp_path / "of-parts")
    assert values_of(tmp_path / "of-parts") == values_of(tmp_path / "of-folds")


def test_a_single_fold_is_scored_out_of_fold_too(collection, tmp_path):
    def one(name, flipped=None):
        folder = write_folds(tmp_path / name, flipped) / "Fold1"
        append(collection, folder, tmp_path / name / "out")
        return values_of(tmp_path / name / "out")

    before, after = one("a"), one("b", flipped=0)
    assert {key[1] for key in before} == {"train", "vali", "test"}
    changed = {key[2] for key in before if before[key] != after[key]}
    assert "q0" not in changed
    assert changed


def test_three_parts_train_on_one_each(collection, tmp_path):
    """One other fold alone tests a fold's training queries, which are divided anew."""

    def three(name, flipped=None):
        folder = write_parts(tmp_path / name, flipped)
        (folder / "S4.txt").unlink()
        append(collection, folder, tmp_path / f"{name}-out")
        return values_of(tmp_path / f"{name}-out")

    before, after = three("a"), three("b", flipped=0)
    changed = {key for key in before if before[key] != after[key]}
    assert {key[0] for key in changed} == {"Fold1"}  # trains on S1, which has q0
    assert "q0" not in {key[2] for key in changed}


def test_training_queries_that_no_fold_tests_are_learned_from_too(collection, tmp_path):
    """Of Fold1's training queries, two other folds test those of the first two parts, none those
    of the third."""

    def some(name, flipped=None):
        parts = [
            "".join("".join(lines_of(q, q == flipped)) for q in range(N_QUERIES) if q // 5 % 5 == i)
            for i in range(5)
        ]
        for fold in range(3):
            home = tmp_path / name / f"Fold{fold + 1}"
            home.mkdir(parents=True)
            *train, vali, test = (parts[(fold + i) % 5] for i in range(5))
            for file, text in (("train", "".join(train)), ("vali", vali), ("test", test)):
                (home / f"{file}.txt").write_text(text, newline="")
        append(collection, tmp_path / name, tmp_path / f"{name}-out")
        return values_of(tmp_path / f"{name}-out")

    before, after = some("a"), some("b", flipped=10)  # in the third part
    changed = {key for key in before if before[key] != after[key]}
    assert {(fold, part) for fold, part, *_ in changed} >= {("Fold1", "train"), ("Fold1", "test")}
    assert "q10" not in {key[2] for key in changed}


def test_training_queries_that_give_test_queries_away_are_told_with_the_column(
    collection, tmp_path
):
    """Q0 is in S1 and q3, of the same text here, in S4, which Fold1 tests."""
    texts = [*collection.query_texts]
    texts[3] = texts[0]
    append(replace(collection, query_texts=texts), write_parts(tmp_path / "a"), tmp_path / "b")
    provenance = read_rows(tmp_path / "b/Fold1/test.txt").provenance
    assert "1 test query has the same text as a training" in provenance["opca"]["remarks"][-1]
    assert "remarks" not in provenance["vsm"]


@pytest.mark.parametrize("label", [0, 1])
def test_two_labels_of_a_pair_are_told(collection, tmp_path, label):
    parts = write_parts(tmp_path / "a")
    again = next(line for line in lines_of(0) if int(line[0]) == label)
    with (parts / "S1.txt").open("a", newline="") as file:
        file.write(again + str(1 - int(again[0])) + again[1:])
    with pytest.warns(LetorWarning, match="1 row with another label .* learn from the largest"):
        data = FoldRows.read(parts, ColumnContext.of(collection))
    found = data.context.collection.judgements
    document = collection.document_ids.index(again.split("docid = ")[1].split("\t")[0])
    assert found.grade[(found.query == 0) & (found.document == document)].tolist() == [1]


def test_the_labels_are_the_judgements(collection, tmp_path):
    data = FoldRows.read(write_parts(tmp_path / "a"), ColumnContext.of(collection))
    found = data.context.collection.judgements
    expected = {
        (query, int(line.split("docid = d")[1].split("\t")[0])): int(line[0])
        for query in range(N_QUERIES)
        for line in lines_of(query)
    }
    pairs = zip(found.query.tolist(), found.document.tolist(), strict=True)
    assert dict(zip(pairs, found.grade.tolist(), strict=True)) == expected


def test_queries_of_one_text_are_dealt_to_one_part(collection, tmp_path):
    (tmp_path / "a.txt").write_text("".join(line for q in range(N_QUERIES) for line in lines_of(q)))
    half = N_QUERIES // 2
    twins = replace(collection, query_texts=collection.query_texts[:half] * 2)
    for fold in FoldRows.read(tmp_path / "a.txt", ColumnContext.of(twins)).folds:
        for part in (fold.train, fold.validation, fold.test):
            assert (
                sorted(
                    {int(q[1:]) % half for q in part}
                    & {
                        int(q[1:]) % half
                        for q in {*fold.train, *fold.validation, *fold.test} - {*part}
                    }
                )
                == []
            )


def test_a_file_is_dealt_into_folds(collection, tmp_path):
    """Each query is tested once, in a fold whose models saw nothing of it."""
    rows = [line for query in range(N_QUERIES) for line in lines_of(query)]
    wrong = [line for query in range(N_QUERIES) for line in lines_of(query, query == 5)]
    for name, lines in (("a", rows), ("b", wrong)):
        (tmp_path / f"{name}.txt").write_text("".join(lines), newline="")
        append(collection, tmp_path / f"{name}.txt", tmp_path / name, n_folds=6)
    before, after = values_of(tmp_path / "a"), values_of(tmp_path / "b")
    tested = [key[2] for key in before if key[1] == "test"]
    assert sorted(tested) == sorted(f"q{i}" for i in range(N_QUERIES) for _ in range(N_ROWS))
    changed = {key[2] for key in before if before[key] != after[key]}
    assert "q5" not in changed
    assert changed
    with pytest.raises(InputError, match="give 4 or more"):
        append(collection, tmp_path / "a.txt", tmp_path / "c", n_folds=3)


def test_parquet_stays_parquet(collection, tmp_path):
    """So that missing values stay missing."""
    (tmp_path / "rows.txt").write_text("".join(line for q in range(20) for line in lines_of(q)))
    rows = read_rows(tmp_path / "rows.txt")
    rows.X[3, 0] = np.nan
    write_rows(rows, tmp_path / "rows.parquet")
    append(collection, tmp_path / "rows.parquet", tmp_path / "a")
    found = [read_rows(path) for path in sorted((tmp_path / "a").rglob("test.parquet"))]
    assert sum(len(part) for part in found) == len(rows)
    assert sum(int(np.isnan(part.X).sum()) for part in found) == 1


def test_the_collections_own_judgements_are_not_used(collection, tmp_path):
    query, document = np.divmod(np.arange(200), 5)
    judged = Judgements(query, document, np.ones(200, np.int64))
    other = Collection(**{**vars(collection), "judgements": judged})
    source = write_folds(tmp_path / "a")
    append(collection, source, tmp_path / "b")
    append(other, source, tmp_path / "c")
    assert values_of(tmp_path / "b") == values_of(tmp_path / "c")


def test_a_taken_name_is_refused_before_any_work(collection, tmp_path):
    write_folds(tmp_path / "a")
    data = FoldRows.read(tmp_path / "a", ColumnContext.of(collection))
    with pytest.raises(InputError, match="two columns are called 1"):
        next(data.columns([LearnedColumn("1", OPCA(rank=6, word_weight=0.5))]))


def test_values_that_are_not_finite_are_copied(collection, tmp_path):
    source = write_folds(tmp_path / "a")
    for path in source.rglob("*.txt"):
        path.write_bytes(
            path.read_bytes().replace(b"3:0.50 # docid = d9\t", b"3:nan # docid = d9\t")
        )
    append(collection, source, tmp_path / "b", non_finite="nan")
    assert b"3:nan 4:" in (tmp_path / "b/Fold1/train.txt").read_bytes()
    with pytest.raises(InputError, match="nan"):
        FoldRows.read(source, ColumnContext.of(collection))


def test_models_are_appended_together(collection, tmp_path):
    append(collection, write_folds(tmp_path / "a"), tmp_path / "b")
    with pytest.raises(InputError, match="append all models to the rows without them at once"):
        FoldRows.read(tmp_path / "b", ColumnContext.of(collection))


def test_rows_without_text(collection, tmp_path):
    source = write_folds(tmp_path / "a")
    for path in source.rglob("*.txt"):
        text = path.read_bytes().replace(b"docid = d7\t", b"docid = gone\t")
        path.write_bytes(text.replace(b"qid:q3 ", b"qid:unknown "))
    with pytest.raises(InputError, match="rows have no text"):
        FoldRows.read(source, ColumnContext.of(collection))
    data = append(collection, source, tmp_path / "b", on_missing="zero")
    values = values_of(tmp_path / "b")
    lost = {key for key in values if key[2] == "unknown" or key[3] == "gone"}
    assert len(lost) > N_FOLDS * data.join.n_without_text / 2
    assert all(values[key] == 0 for key in lost)


@pytest.fixture
def workspace(collection, tmp_path):
    make_workspace(collection, tmp_path / "workspace")
    return tmp_path / "workspace"


def run(*arguments):
    return CliRunner().invoke(app, ["columns", "append", *map(str, arguments)])


def test_the_command_tells_what_it_made(workspace, tmp_path):
    source, out = write_folds(tmp_path / "a"), tmp_path / "b"
    options = ["--workspace", workspace, "--param", "opca.rank=6", "--quiet"]
    result = run(source, "--model", "opca", *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert "4: opca" in result.output
    assert "400 rows in 4 folds" in result.output
    assert sorted(path.name for path in out.iterdir() if path.name[0] != ".") == [
        "Fold1", "Fold2", "Fold3", "Fold4", "build.json", "models",
    ]  # fmt: skip
    provenance = read_rows(out / "Fold2/train.txt").provenance["opca"]
    assert provenance["fold"] == "Fold2"
    assert "out of fold" in provenance["trained on"]


def test_rows_are_never_overwritten(workspace, tmp_path):
    source = write_folds(tmp_path / "a")
    options = ["--model", "opca", "--workspace", workspace, "--quiet", "--out"]
    before = {path: path.read_bytes() for path in source.rglob("*.txt")}
    for rows, out, message in (
        (source / "Fold1/train.txt", source, "holds the input"),
        (source / "Fold1", source, "holds the input"),
        (source, source / "Fold5", "stay as they are"),
    ):
        result = run(rows, *options, out)
        assert result.exit_code != 0
        assert message in str(result.exception)
    assert {path: path.read_bytes() for path in source.rglob("*.txt")} == before


def test_folds_of_two_runs_do_not_mix(workspace, tmp_path, monkeypatch):
    source, out = write_folds(tmp_path / "a"), tmp_path / "b"
    options = ["--workspace", workspace, "--param", "opca.rank=6", "--quiet", "--out", out]
    assert run(source, "--model", "opca", *options).exit_code == 0
    before = {path: path.read_bytes() for path in out.glob("Fold*/*")}
    write = FoldRows.write

    def write_two(self, fold, *arguments):
        if fold.name == "Fold3":
            raise KeyboardInterrupt
        return write(self, fold, *arguments)

    monkeypatch.setattr(FoldRows, "write", write_two)
    assert run(source, "--model", "opca", "--seed", 1, *options).exit_code != 0
    assert {path: path.read_bytes() for path in out.glob("Fold*/*")} == before
    left = {path.name for path in out.iterdir()}
    assert left == {"Fold1", "Fold2", "Fold3", "Fold4", "build.json", "models", ".locked"}


def test_what_a_killed_run_left_is_removed(workspace, tmp_path):
    source, out = write_folds(tmp_path / "a"), tmp_path / "b"
    (out / "models").mkdir(parents=True)
    for target in (out / "..lock", out / "models" / "opca-0.safetensors"):
        temporary_paths(target)[0].write_text("cut off")
    result = run(source, "--model", "opca", "--workspace", workspace, "--quiet", "--out", out)
    assert result.exit_code == 0, result.output
    assert not [path for path in out.rglob("*") if is_temporary(path.name)]


def test_families_alone_serve_all_folds(workspace, tmp_path):
    source, out = write_folds(tmp_path / "a"), tmp_path / "b"
    result = run(source, "--family", "vsm", "--workspace", workspace, "--quiet", "--out", out)
    assert result.exit_code == 0, result.output
    rows, folds = read_folds(out)  # the same in all folds
    assert (rows.column_names[-1], len(folds)) == ("vsm", N_FOLDS)


def test_scores_for_folds_need_no_texts(tmp_path):
    source, out = write_folds(tmp_path / "a"), tmp_path / "b"
    lines = [f"q{q} d{d} {q + d / 100}" for q in range(N_QUERIES) for d in range(N_DOCUMENTS)]
    (tmp_path / "mine.tsv").write_text("\n".join(["qid docno mine", *lines]).replace(" ", "\t"))
    scores = ["--family", "scores", "--option", f"scores.files.mine={tmp_path / 'mine.tsv'}"]
    result = run(source, *scores, "--quiet", "--out", out)
    assert result.exit_code == 0, result.output
    assert "words in queries" not in result.output
    for (_, _, query, document), value in values_of(out, "mine").items():
        assert value == pytest.approx(int(query[1:]) + int(document[1:]) / 100)
    result = run(source, *scores, "--family", "vsm", "--quiet", "--out", tmp_path / "c")
    assert "the columns of vsm are computed from texts" in str(result.exception)


def test_the_command_refuses_what_would_be_ignored(workspace, tmp_path):
    source = write_folds(tmp_path / "a")
    with_texts = ["--workspace", workspace, "--out", tmp_path / "b"]
    shutil.copy(source / "Fold1/test.txt", tmp_path / "test.txt")
    for arguments, message in (
        ([source, "--model", "opca", "--folds", 5, *with_texts], "has its folds"),
        ([tmp_path / "test.txt", "--family", "vsm", "--folds", 5, *with_texts], "for --model"),
        (
            [source, "--model", "opca", "--out", tmp_path / "b"],
            "of the rows: name their --workspace",
        ),
        ([source, "--model-file", source, *with_texts], "append a model of other queries file by"),
        (
            [source, "--model", "opca", "--workspace", workspace, "--out", source],
            "stay as they are",
        ),
        ([workspace, "--model", "opca", *with_texts], "has no LETOR folds"),
    ):
        result = run(*arguments)
        assert result.exit_code != 0
        assert message in str(result.exception)
    assert not (tmp_path / "b").exists()
