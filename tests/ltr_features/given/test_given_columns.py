"""What holds for all columns of given values: remarks, descriptions, the command line."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from given import save_vectors, write_scores
from random_collection import random_collection
from toys import refused, run

from letor.column_names import read_names
from letor.column_settings import changed_settings
from letor.folds import k_fold
from letor.parquet import write_parquet
from letor.svmlight import read_letor
from ltr_features.blocks import write_columns
from ltr_features.candidates import choose_candidates
from ltr_features.column_workers import blocks_on
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.columns.document_numbers import DocumentNumbers
from ltr_features.columns.given_scores import GivenScores
from ltr_features.columns.given_vectors import GivenVectors
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.feature_table import build_columns
from ltr_features.part_store import PartFolder
from ltr_features.remarks import ColumnWarning, family_remarks
from ltr_features.sample import write_sample

BM25 = {"bm25": {"depth": 5}}


def test_columns_are_described_alike_however_a_path_is_spelled(context, tmp_path, monkeypatch):
    """Reports are the same bytes wherever their files are."""
    monkeypatch.chdir(tmp_path)
    write_scores(Path("scores.run"), "run")
    Path("prices.csv").write_text("id,price\nd0,1\n")
    for folder in (Path(), tmp_path):
        scores = GivenScores(files={"engine": folder / "scores.run"})
        numbers = DocumentNumbers(file=folder / "prices.csv")
        assert [spec.description for spec in (*scores.columns, *numbers.columns)] == [
            "score in scores.run",
            "price of the document in prices.csv",
        ]


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A workspace, and families whose sources know the first and the last few queries only."""
    folder = tmp_path_factory.mktemp("halves")
    collection = random_collection(30, 90)
    workspace = make_workspace(collection, folder / "workspace")
    ids, documents = list(collection.query_ids), list(collection.document_ids)
    known = [*ids[:4], *ids[-4:]]
    (folder / "s.tsv").write_text(
        "qid\tdocno\ts\n" + "".join(f"{q}\t{d}\t1\n" for q in known for d in documents)
    )
    vectors = GivenVectors(
        queries=save_vectors(folder / "q.npy", np.ones((8, 3), np.float32), known),
        documents=save_vectors(
            folder / "d.npy", np.ones((len(documents), 3), np.float32), documents
        ),
        measures=["cosine", "dot"],
    )
    return workspace, [GivenScores(files={"s": folder / "s.tsv"}), vectors]


def test_rows_without_a_score_are_counted_over_all_blocks(halves, tmp_path, workers):
    workspace, families = halves
    context, path = open_workspace(workspace), tmp_path / "rows.parquet"
    found = choose_candidates(context, BM25)
    table = build_columns(context, found.pairs, families)
    n, known = len(table), int((table.X[:, 0] == 1).sum())
    assert 0 < known < n
    share = f"{n - known} of {n} rows ({100 * (n - known) / n:.1f} %)"
    told = [
        f"scores: {share} have no score and get 0, or the query's lowest if that is below 0",
        f"vectors: {share} have no vectors and get 0",
    ]
    assert family_remarks(table.provenance) == told
    assert {notes["rows without a value"] for notes in table.provenance.values()} == {n - known}
    write_parquet(table, path)
    expected = path.read_bytes()
    for memory in (1, 2**30):
        written = write_columns(context, BM25, families, path, memory=memory)
        assert family_remarks(written.provenance) == told
        assert path.read_bytes() == expected
    with blocks_on(workers.scheduler_address, workspace, PartFolder(tmp_path / "b")) as made_by:
        written = write_columns(context, BM25, families, path, memory=1, made_by=made_by)
    assert family_remarks(written.provenance) == told
    assert path.read_bytes() == expected


def test_a_stored_builder_has_the_values_of_queries_by_their_ids(halves, tmp_path):
    workspace, families = halves
    collection = open_workspace(workspace).collection
    ids, texts = list(collection.query_ids), collection.query_texts
    rows = [(q, text, d) for q, text in zip(ids, texts, strict=True) for d in ("d0", "d5")]
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno"])
    folds = k_fold(ids, 5, seed=0)
    fitted = FeatureBuilder(families).fit(collection, folds[0].train, folds=folds)
    fitted.save(tmp_path / "saved")
    with pytest.warns(ColumnWarning) as told:
        found = FeatureBuilder.load(tmp_path / "saved").transform(frame)
    pd.testing.assert_frame_equal(found, fitted.transform(frame))
    assert set(found.loc[found["s"] == 1, "qid"]) == {*ids[:4], *ids[-4:]}
    lacking = (
        f"nothing is given for {len(ids) - 8} of {len(ids)} queries ('q4', 'q5', 'q6', ...); their "
        "rows get what stands for missing values"
    )
    names = ["s", "vectors_cosine", "vectors_dot"]
    assert [str(warning.message) for warning in told] == [f"{name}: {lacking}" for name in names]


def test_other_substitutes_are_another_way_to_make_a_column(context, tmp_path):
    """However they are given, for all columns or for one, and if one is the default."""
    scores, numbers = tmp_path / "s.csv", tmp_path / "n.csv"
    scores.write_text("qid,docno,dense,km\na,d0,1,2\n")
    numbers.write_text("id,price,stars\nd0,1,2\n")
    vectors = {
        "queries": save_vectors(tmp_path / "q.npy", np.ones((1, 3), np.float32), ["a"]),
        "documents": save_vectors(tmp_path / "d.npy", np.ones((1, 3), np.float32), ["d0"]),
        "measures": ["cosine", "distance"],
    }

    def made(family):
        return {name: family.column_settings(context, name) for name in family.column_names}

    for kind, options, (first, second) in (
        (GivenScores, {"files": {"e": scores}}, ("e_dense", "e_km")),
        (DocumentNumbers, {"file": numbers}, ("price", "stars")),
    ):
        usual, all_seven = made(kind(**options)), made(kind(**options, missing=7))
        assert changed_settings(usual, all_seven).startswith(f"2 columns ({first}, {second}) made")
        one = made(kind(**options, missing={second: 7}))
        assert changed_settings(usual, one).startswith(f"1 column ({second}) made in another way")
        assert changed_settings(one, usual).startswith(f"1 column ({second}) made in another way")
        assert (
            changed_settings(all_seven, made(kind(**options, missing={first: 7, second: 7})))
            is None
        )
    usual, zero = made(GivenVectors(**vectors)), made(GivenVectors(**vectors, missing=0))
    assert changed_settings(usual, zero).startswith("1 column (vectors_distance) made in another")


def test_queries_of_which_some_rows_have_given_values_are_not_told(halves, recwarn):
    workspace, families = halves
    collection = open_workspace(workspace).collection
    fitted = FeatureBuilder(families).fit(collection)
    recwarn.clear()
    fitted.matrix(pd.DataFrame({"qid": ["q0"], "query": ["w1"], "docno": ["d0"]}))
    assert not [w for w in recwarn if issubclass(w.category, ColumnWarning)]


def test_what_is_said_of_several_columns_is_told_once_and_names_those_it_is_about():
    """A LETOR file has a column for each feature, and lacks the same rows in all of them."""
    lacking, other = "3 of 5 rows have no number", "2 of 5 rows have no number"
    numbers = [{"family": "numbers", "remarks": [lacking]}] * 4
    numbers += [{"family": "numbers", "remarks": [other]}, {"family": "numbers"}]
    provenance = dict(zip("abcdef", numbers, strict=True))
    told = [f"numbers (a, b, c, ... (4 in all)): {lacking}", f"numbers (e): {other}"]
    assert family_remarks(provenance) == told
    of_all = {name: provenance[name] for name in "abcd"}
    assert family_remarks(of_all) == [f"numbers: {lacking}"]
    shared = of_all | {"s": {"family": "scores", "remarks": [lacking]}, "t": {"family": "scores"}}
    assert family_remarks(shared) == [f"numbers and scores (s): {lacking}"]


def test_the_commands_tell_of_all_rows_without_a_score(halves, tmp_path):
    workspace, _ = halves
    scores = workspace.parent / "s.tsv"
    build = (
        f"columns build --workspace {workspace} --family scores --option scores.files.s={scores}"
    )
    told = [
        run(*f"{build} {more}".split()).stderr.splitlines()
        for more in (
            f"--out {tmp_path / 'rows.txt'}",
            f"--out {tmp_path / 'rows.parquet'} --memory 1MiB",
            f"--out {tmp_path / 'folds'} --folds 5",
            f"--out {tmp_path / 'blocks'} --folds 5 --format parquet",
            f"--out {tmp_path / 'workers.parquet'} --scheduler local:1",
        )
    ]
    (remark,) = (line for line in told[0] if line.startswith("scores: "))
    assert all(remark in lines for lines in told)
    append = (
        f"columns append {tmp_path / 'rows.txt'} --workspace {workspace} --family vectors "
        f"--option vectors.queries={workspace.parent / 'q.npy'} "
        f"--option vectors.documents={workspace.parent / 'd.npy'} --out {tmp_path / 'a.txt'}"
    )
    run(*append.split())
    *_, notes = read_names(tmp_path / "a.columns.json")
    (appended,) = notes["remarks"]
    assert appended.replace("vectors", "score") in remark


def test_rows_get_scores_and_vectors_without_their_texts(tmp_path, monkeypatch):
    """The same bytes as with the workspace."""
    monkeypatch.chdir(tmp_path)
    write_sample("sample")
    append = (
        "columns append sample/letor/Fold1/test.txt --family scores --family vectors "
        "--option scores.files.lsa=sample/runs/lsa.run --option scores.missing=lowest "
        "--option vectors.queries=sample/vectors/queries.npy "
        "--option vectors.documents=sample/vectors/documents.npy --out"
    )
    told = run(*append.split(), "without.txt").stderr
    assert "have no score and get the query's lowest" in told
    run("index", "beir", "folder=sample/beir", "--out", "workspace")
    run(*append.split(), "with.txt", "--workspace", "workspace")
    for suffix in (".txt", ".columns.json"):
        assert Path(f"without{suffix}").read_bytes() == Path(f"with{suffix}").read_bytes()
    texts = "columns append sample/letor/Fold1/test.txt --family vsm --out vsm.txt"
    assert "vsm are computed from texts: name the workspace" in refused(*texts.split())


def test_the_command_line_builds_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample("sample")
    commands = [
        "index beir folder=sample/beir --out workspace",
        "columns build --workspace workspace --family scores --family vectors --depth 10 "
        "--option scores.files.lsa=sample/runs/lsa.run "
        "--option vectors.queries=sample/vectors/queries.npy "
        "--option vectors.documents=sample/vectors/documents.npy --folds 5 --out folds",
    ]
    for command in commands:
        result = run(*command.split())
    assert re.search(r"scores: [\d,]+ of 2,330 rows \(.* %\) have no score and", result.stderr)
    rows = read_letor("folds/Fold1/test.txt")
    notes = read_names(Path("folds/Fold1/test.columns.json"))
    assert [note["name"] for note in notes] == ["lsa", "vectors_cosine"]
    assert notes[0]["trained on"] == "given; not checked for leaks"
    both = rows.X[rows.X[:, 0] != 0]
    # The run is the ranking by these vectors' cosines.
    np.testing.assert_allclose(both[:, 0], both[:, 1], atol=1e-5)
