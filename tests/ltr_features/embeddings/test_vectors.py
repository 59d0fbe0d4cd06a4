import numpy as np
import pytest

from letor.errors import InputError
from ltr_features.embeddings.vectors import WordVectors, unit_rows
from ltr_features.text.analyzer import Analyzer
from ssi_models.vocabulary import Vocabulary


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("Paris 3 4\nParis_Hilton 1 0\nparis 0 2\nRunning 1 1\nzero 0 0\nruns 1 -1\n")
    return path


def test_rows_are_unit_vectors(path):
    vectors = WordVectors.load(path)
    assert vectors.words[0] == "Paris"
    assert vectors.dimension == 2
    np.testing.assert_allclose(
        vectors.units,
        [[0.6, 0.8], [1, 0], [0, 1], [0.5**0.5, 0.5**0.5], [0, 0], [0.5**0.5, -(0.5**0.5)]],
        rtol=1e-7,
    )
    assert vectors.source == "file v.txt"


def test_tokens_are_found_by_spelling_then_by_recipe(path):
    tokens = ["paris", "running", "zero", "london"]
    exact = WordVectors.load(path, tokens)
    assert list(exact.words) == ["paris", "zero"]
    folded = WordVectors.load(path, tokens, Analyzer())
    assert sorted(folded.words) == ["paris", "running", "zero"]
    rows = folded.rows_for(tokens)
    np.testing.assert_allclose(rows, [[0, 1], [0.5**0.5] * 2, [0, 0], [0, 0]], rtol=1e-7)
    stemmed = WordVectors.load(path, ["run"], Analyzer(stemmer="english"))
    # "Running" comes first in the file.
    np.testing.assert_allclose(stemmed.rows_for(["run"]), [[0.5**0.5] * 2], rtol=1e-7)
    assert not WordVectors.load(path, []).rows_for(["x"]).any()


def test_our_own_format_is_mapped_and_equal(path, tmp_path):
    vectors = WordVectors.load(path)
    vectors.save(tmp_path / "v.safetensors")
    stored = WordVectors.load(tmp_path / "v.safetensors")
    assert stored.words == vectors.words
    np.testing.assert_array_equal(stored.units, vectors.units)
    assert isinstance(stored.units.base, np.memmap)
    assert not stored.units.flags.writeable
    some = WordVectors.load(tmp_path / "v.safetensors", ["paris", "running"], Analyzer())
    twin = WordVectors.load(path, ["paris", "running"], Analyzer())
    assert some.words == twin.words
    np.testing.assert_array_equal(some.units, twin.units)
    again = tmp_path / "again.safetensors"
    stored.save(again)
    assert again.read_bytes() == (tmp_path / "v.safetensors").read_bytes()


def test_bad_files_of_our_own_format(path, tmp_path):
    vectors = WordVectors.load(path)
    with pytest.raises(InputError, match=r"must end in \.safetensors"):
        vectors.save(tmp_path / "v.bin")
    file = tmp_path / "v.safetensors"
    vectors.save(file)
    content = file.read_bytes()
    for damaged in (content[:-4], content[:20], b"", b"x" * 100):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"v\.safetensors"):
            WordVectors.load(file)
    with pytest.raises(InputError, match="no such file"):
        WordVectors.load(tmp_path / "none.safetensors")


def test_unit_rows_keep_zero_and_tiny_rows_finite():
    rows = unit_rows(np.array([[0, 0], [1e-30, 0], [3e38, 3e38]], dtype=np.float32))
    np.testing.assert_allclose(rows, [[0, 0], [1, 0], [0.5**0.5] * 2], rtol=1e-6)


def test_vectors_of_no_words():
    none = WordVectors(Vocabulary([]), np.zeros((0, 3), np.float32), "nothing")
    assert none.rows_for(["a", "b"]).tolist() == [[0, 0, 0], [0, 0, 0]]
