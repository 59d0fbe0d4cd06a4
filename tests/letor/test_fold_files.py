"""Folders of LETOR files in both layouts."""

import gzip

import numpy as np
import pytest

from letor.column_names import write_rows
from letor.dataset import RankingData
from letor.errors import InputError
from letor.fold_files import concatenate, read_folds, read_tested

ROWS = {
    "1": "2 qid:1 1:0.5 2:1 #docid = a\n0 qid:1 1:0.25 2:0 #docid = b\n",
    "2": "1 qid:2 1:0.5 2:3 #docid = c\n",
    "3": "0 qid:3 1:1 2:2 #docid = d\n",
}


def fold_folder(home, train, validation, test, names=("train.txt", "vali.txt", "test.txt")):
    home.mkdir()
    for name, queries in zip(names, (train, validation, test), strict=True):
        text = "".join(ROWS[q] for q in queries).encode()
        (home / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)


def test_parts(tmp_path):
    for i in (1, 2, 3):
        (tmp_path / f"S{i}.txt").write_text(ROWS[str(i)])
    (tmp_path / "readme.txt").write_text("not a part")
    data, folds = read_folds(tmp_path)
    assert data.query_ids == ["1", "2", "3"]
    assert list(data.document_ids) == ["a", "b", "c", "d"]
    assert data.X.tolist() == [[0.5, 1], [0.25, 0], [0.5, 3], [1, 2]]
    assert [(f.train, f.validation, f.test) for f in folds] == [
        (["1"], ["2"], ["3"]), (["2"], ["3"], ["1"]), (["3"], ["1"], ["2"]),
    ]  # fmt: skip


def test_parts_are_ordered_by_number(tmp_path):
    for i in range(1, 12):
        (tmp_path / f"S{i}.txt").write_text(f"1 qid:{i} 1:1\n")
    data, _ = read_folds(tmp_path)
    assert data.query_ids == [str(i) for i in range(1, 12)]


def test_fold_folders(tmp_path):
    fold_folder(tmp_path / "Fold1", ["3"], ["1"], ["2"])
    old = ("trainingset.txt.gz", "validationset.txt.gz", "testset.txt.gz")
    fold_folder(tmp_path / "Fold2", ["1"], ["2"], ["3"], old)
    data, folds = read_folds(tmp_path)
    assert data.query_ids == ["3", "1", "2"]
    assert data.y.tolist() == [0, 2, 0, 1]
    assert [f.name for f in folds] == ["Fold1", "Fold2"]
    assert (folds[1].train, folds[1].validation, folds[1].test) == (["1"], ["2"], ["3"])
    assert folds[1].split(data)[0].y.tolist() == [2, 0]


def test_one_fold(tmp_path):
    fold_folder(tmp_path / "mine", ["1"], ["2"], ["3"])
    data, folds = read_folds(tmp_path / "mine")
    assert [(f.name, f.test) for f in folds] == [("mine", ["3"])]
    assert len(data) == 4


def test_names_of_yahoo(tmp_path):
    names = ("set1.train.txt", "set1.valid.txt", "set1.test.txt")
    fold_folder(tmp_path / "set1", ["1"], ["2"], ["3"], names)
    _, (fold,) = read_folds(tmp_path / "set1")
    assert (fold.train, fold.validation, fold.test) == (["1"], ["2"], ["3"])
    (tmp_path / "set1/set2.train.txt").write_text(ROWS["1"])
    with pytest.raises(InputError, match=r"set1.train.txt, set2.train.txt; give each data set"):
        read_folds(tmp_path / "set1")


def test_options_reach_the_reader(tmp_path):
    fold_folder(tmp_path / "mine", ["1"], ["2"], ["3"])
    data, _ = read_folds(tmp_path / "mine", n_columns=3, comments=False)
    assert data.X.shape == (4, 3)
    assert data.document_ids is None


def test_errors_name_file_and_query(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        read_folds(tmp_path / "absent")
    with pytest.raises(InputError, match="has no LETOR folds"):
        read_folds(tmp_path)
    fold_folder(tmp_path / "Fold1", ["1"], ["2"], ["3"])
    fold_folder(tmp_path / "Fold2", ["3"], ["1"], ["2"])
    (tmp_path / "Fold2" / "test.txt").write_text(ROWS["2"].replace("0.5", "0.4"))
    with pytest.raises(InputError, match=r"Fold2.test\.txt: query 2 has other rows than in .*vali"):
        read_folds(tmp_path)
    (tmp_path / "Fold2" / "test.txt").write_text(ROWS["2"].replace("2:3", ""))
    with pytest.raises(InputError, match=r"test\.txt has 1 columns, .* give n_columns=2"):
        read_folds(tmp_path)
    (tmp_path / "Fold2" / "test.txt").write_text(ROWS["3"])
    with pytest.raises(InputError, match="query '3' is in test and already in train"):
        read_folds(tmp_path)
    (tmp_path / "Fold2" / "test.txt").unlink()
    with pytest.raises(InputError, match="Fold2 has no test file"):
        read_folds(tmp_path)


def test_folds_that_are_being_written_are_refused(tmp_path):
    fold_folder(tmp_path / "Fold1", ["1"], ["2"], ["3"])
    (tmp_path / ".lock").write_text("")
    with pytest.raises(InputError, match="ended without finishing"):
        read_folds(tmp_path)


@pytest.mark.parametrize(
    "names",
    [("S1.txt", "S2.txt", "S3.txt"), ("Fold1/train.txt", "Fold1/vali.txt", "Fold1/test.txt")],
)
def test_parts_whose_columns_were_made_in_other_ways_are_refused(tmp_path, names):
    for number, name in enumerate(names, start=1):
        rows = RankingData.from_rows(np.ones((1, 1)), [1], [str(number)])
        notes = {"own": {"settings": {"fold": f"Fold{1 + number // 3}"}}}
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_rows(rows.with_columns(["own"], np.ones((1, 1), np.float32), notes), tmp_path / name)
    read = read_folds if names[0] == "S1.txt" else read_tested
    with pytest.raises(InputError, match=r"with fold = 'Fold2' instead of 'Fold1'"):
        read(tmp_path)


def test_a_query_that_two_folds_test_is_refused(tmp_path):
    fold_folder(tmp_path / "Fold1", ["1"], ["2"], ["3"])
    fold_folder(tmp_path / "Fold2", ["2"], ["1"], ["3"])
    with pytest.raises(InputError, match=r"Fold2: its test query 3 is a test query of .*Fold1 too"):
        read_folds(tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["Fold1", "Fold3"], "Fold2 is missing, while Fold3 is there"),
        (["S1.txt", "S2.txt", "S4.txt"], r"S3\.txt is missing, while S4\.txt is there"),
        (["S1.txt", "S2.txt", "S3.txt", "S3.parquet"], r"both S3\.parquet and S3\.txt; give each"),
        (["S1.txt", "S2.txt", "Fold1", "Fold01"], "has both Fold01 and Fold1; give each"),
    ],
)
def test_a_number_that_is_missing_or_given_twice_is_refused(tmp_path, names, message):
    for name in names:
        if name.startswith("S"):
            (tmp_path / name).touch()
        else:
            fold_folder(tmp_path / name, ["1"], ["2"], ["3"])
    with pytest.raises(InputError, match=message):
        read_folds(tmp_path)


def test_a_query_in_two_parts_is_refused(tmp_path):
    for i, query in enumerate("121", start=1):
        (tmp_path / f"S{i}.txt").write_text(ROWS[query])
    with pytest.raises(InputError, match=r"S3\.txt: query '1' is in .*S1\.txt, too; .* distinct"):
        read_folds(tmp_path)


def test_concatenate_joins_rows_of_a_query():
    one = RankingData.from_rows([[1], [2]], [0, 1], ["a", "b"])
    two = RankingData.from_rows([[3], [4]], [2, 0], ["b", "c"])
    both = concatenate([one, two])
    assert both.query_ids == ["a", "b", "c"]
    assert both.query_index.tolist() == [0, 1, 1, 2]
    assert both.group_sizes.tolist() == [1, 2, 1]
    assert both.X[both.order][:, 0].tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match="2 columns cannot be appended"):
        concatenate([one, RankingData.from_rows(np.zeros((1, 2)), [0], ["a"])])


@pytest.mark.data
def test_mq2008_folds(data_folder):
    """Sizes of the official folds: 471 / 157 / 156 queries (LETOR 4.0 description)."""
    data, folds = read_folds(data_folder / "letor4_mq2008")
    assert (len(data), data.n_queries, data.X.shape[1]) == (15_211, 784, 46)
    sizes = [[len(part) for part in (f.train, f.validation, f.test)] for f in folds]
    assert sizes[0] == [471, 157, 156]
    assert all(sum(size) == 784 for size in sizes)
