"""Similarities of vectors that are given."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from given import PAIRS, save_vectors

from letor.errors import InputError
from ltr_features.columns.given_vectors import GivenVectors
from ltr_features.embeddings.id_vectors import read_id_vectors
from ltr_features.text.collection import Pairs


def test_zeros_that_would_fill_the_memory_are_refused(tmp_path):
    path = tmp_path / "v.npz"
    (tmp_path / "v.txt").write_text("a\n")
    sp.save_npz(path, sp.csr_matrix(np.zeros((1, 9), np.float32)))
    assert read_id_vectors(path).width == 9
    zeros, n = np.zeros(2**23, np.float32), np.zeros(2**23, np.int32)
    np.savez_compressed(path, data=zeros, indices=n, indptr=[0, 2**23], format=b"csr", shape=[1, 9])
    with pytest.raises(InputError, match=r"v\.npz: its [\d,]+ bytes hold more than 33,554,432"):
        read_id_vectors(path)


Q = np.array([[1, 0, 2], [0, 0, 0]], np.float32)

D = np.array([[2, 1, 2], [0, 3, -1]], np.float32)


@pytest.mark.parametrize("form", [".npy", ".npz", ".safetensors", ".parquet", ".vec"])
def test_every_form_gives_the_same_similarities(context, tmp_path, form):
    family = GivenVectors(
        queries=save_vectors(tmp_path / f"q{form}", Q, ["a", "b"]),
        documents=save_vectors(tmp_path / f"d{form}", D, ["d1", "d0"]),
        measures=["cosine", "dot", "distance"],
        prefix="mine",
        missing=-1,
    )
    family.check(context)
    assert family.column_names == ["mine_cosine", "mine_dot", "mine_distance"]
    # q = (1, 0, 2): |q|² = 5; d0 = (0, 3, -1): 10, q'd = -2; d1 = (2, 1, 2): 9, q'd = 6.
    expected = [
        [-2 / 50**0.5, -2, (1 + 9 + 9) ** 0.5],
        [6 / 45**0.5, 6, 2**0.5],
        [-1, -1, -1],
        [0, 0, 3],
        [-1, -1, -1],
    ]
    found = family.compute(context, PAIRS)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    many = Pairs(*(np.tile(rows, 5000) for rows in (PAIRS.query, PAIRS.document)))
    np.testing.assert_array_equal(family.compute(context, many), np.tile(found, (5000, 1)))
    assert family.n_missing(context, PAIRS) == [2, 2, 2]
    told = "2 of 5 rows (40.0 %) have no vectors and get -1"
    assert family.missing_remark("mine_dot", 2, 5) == told


@pytest.mark.parametrize("form", [".npy", ".npz"])
def test_a_document_without_a_vector_is_not_the_nearest(context, tmp_path, form):
    family = GivenVectors(
        queries=save_vectors(tmp_path / f"q{form}", Q[:1], ["a"]),
        documents=save_vectors(tmp_path / f"d{form}", D, ["d1", "d0"]),
        measures=["cosine", "distance"],
    )
    # |q|² = 5; d2 has no vector and counts as one of length |q| at right angles to q.
    distances = [19**0.5, 2**0.5, 10**0.5, 0, 0]
    cosines = [-2 / 50**0.5, 6 / 45**0.5, 0, 0, 0]
    found = family.compute(context, PAIRS)
    np.testing.assert_allclose(found, np.transpose([cosines, distances]), rtol=1e-6)
    both = replace(family, queries=save_vectors(tmp_path / f"both{form}", Q, ["a", "b"]))
    of_d2 = both.compute(context, Pairs(np.array([1, 0, 1]), np.array([2, 2, 2])))
    np.testing.assert_allclose(of_d2[:, 1], [0, 10**0.5, 0], rtol=1e-6)
    told = "3 of 5 rows (60.0 %) have no vectors and get the distance of"
    assert family.missing_remark("vectors_distance", 3, 5).startswith(told)


def test_the_same_vectors_under_other_ids_are_other_columns(context, tmp_path):
    for name, ids in (("q", "a\nb\n"), ("other", "b\na\n"), ("d", "d0\nd1\nd2\n")):
        (tmp_path / f"{name}.txt").write_text(ids)
        np.save(tmp_path / f"{name}.npy", np.arange(2.0 * len(ids.split())).reshape(-1, 2))
    first, second = (
        GivenVectors(
            queries=tmp_path / "q.npy", query_ids=tmp_path / f"{ids}.txt",
            documents=tmp_path / "d.npy", measures=["dot"],
        )
        for ids in ("q", "other")
    )  # fmt: skip
    assert first.compute(context, PAIRS).ravel().tolist() == [1, 3, 5, 13, 23]
    assert second.compute(context, PAIRS).ravel().tolist() == [3, 13, 23, 3, 5]


def test_vectors_are_not_sent_to_workers(context, tmp_path):
    """They may be gigabytes, and every block of rows sends its families."""
    ids = [*context.collection.document_ids, *(f"other{i}" for i in range(1000))]
    family = GivenVectors(
        queries=save_vectors(tmp_path / "q.npy", np.ones((2, 3), np.float32), ["a", "b"]),
        documents=save_vectors(tmp_path / "d.npy", np.eye(len(ids), 3, dtype=np.float32), ids),
        measures=("dot", "distance"),
    )
    sent = pickle.dumps(family)
    assert len(sent) < 1000
    received = pickle.loads(sent)
    received.check(context)
    assert (received.compute(context, PAIRS) == family.compute(context, PAIRS)).all()


def test_the_arrays_of_savez_are_told_how_to_be_read(tmp_path):
    np.savez(tmp_path / "q.npz", vectors=Q, ids=["a", "b"])
    with pytest.raises(InputError, match=r"q\.npz: holds arrays of np\.savez.* by np\.save, as"):
        GivenVectors(queries=tmp_path / "q.npz", documents=tmp_path / "q.npz")


def test_ids_are_not_named_for_files_that_have_them(tmp_path):
    vectors, ids = tmp_path / "v.txt", tmp_path / "ids.txt"
    vectors.write_text("2 2\na 1 0\nb 0 1\n")
    ids.write_text("c\nd\n")
    GivenVectors(queries=vectors, documents=vectors)
    with pytest.raises(InputError, match=r"v\.txt: the file has the ids .*; leave out .*ids\.txt"):
        GivenVectors(queries=vectors, documents=vectors, document_ids=ids)


def test_bad_vectors_are_refused_by_file(context, tmp_path):
    q, d = (
        save_vectors(tmp_path / "q.npy", Q, "ab"),
        save_vectors(tmp_path / "d.npy", D[:, :2], ["d0", "d1"]),
    )
    with pytest.raises(InputError, match=r"q\.npy has 3 numbers a row, .*d\.npy 2; they must come"):
        GivenVectors(queries=q, documents=d)
    save_vectors(tmp_path / "d.npy", D, ["x", "y"])
    with pytest.raises(InputError, match=r"d\.npy: none of its 2 document ids \('x', 'y'\)"):
        GivenVectors(queries=q, documents=d).check(context)
    save_vectors(tmp_path / "d.npy", D, ["d0"])
    with pytest.raises(InputError, match=r"d\.txt: 1 ids for the 2 rows of .*d\.npy"):
        GivenVectors(queries=q, documents=d)
    save_vectors(tmp_path / "d.npy", D, ["d0", "d1", "d2"])
    with pytest.raises(InputError, match=r"d\.txt: 3 ids for the 2 rows of .*d\.npy"):
        GivenVectors(queries=q, documents=d)
    save_vectors(tmp_path / "d.npy", D, ["d0", "d0"])
    with pytest.raises(InputError, match=r"d\.npy: id 'd0' has two vectors"):
        GivenVectors(queries=q, documents=d)
    save_vectors(tmp_path / "d.npy", np.where(D == 3, np.nan, D), ["d0", "d1"])
    family = GivenVectors(queries=q, documents=d)
    with pytest.raises(InputError, match=r"d\.npy, row 2: the vector of document 'd1' has"):
        family.compute(context, PAIRS)
    (tmp_path / "d.txt").unlink()
    with pytest.raises(InputError, match=r"expected in .*d\.txt, .*by query_ids or document_ids"):
        GivenVectors(queries=q, documents=d)
    d.write_bytes(b"no array")
    with pytest.raises(InputError, match=r"d\.npy: .*cannot be read as \.npy"):
        GivenVectors(queries=q, documents=d)
    np.save(tmp_path / "d.npy", np.array(["a"], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"d\.npy: .*cannot be read as \.npy"):
        GivenVectors(queries=q, documents=d)
    with pytest.raises(InputError, match="name both files"):
        GivenVectors().check(context)
    with pytest.raises(InputError, match="measures must be some of cosine, dot, distance"):
        GivenVectors(measures=["euclid"])


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "b", "c"], [[1.0, 2], [3, 4], [5]], r"row 3: .* it has 1 in 'v', the first row 2"),
        (["a", "b"], [[1.0, 2], None], r"row 2: .* has 0 in 'v', the first row 2"),
        (["a", None], [[1.0, 2], [3, 4]], r"row 2: every row must have an id"),
    ],
)
def test_parquet_rows_that_are_no_vectors_are_named(tmp_path, ids, vectors, message):
    columns = {"id": pa.array(ids, pa.string()), "v": pa.array(vectors, pa.list_(pa.float32()))}
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    with pytest.raises(InputError, match=message):
        GivenVectors(queries=tmp_path / "v.parquet", documents=tmp_path / "v.parquet")
