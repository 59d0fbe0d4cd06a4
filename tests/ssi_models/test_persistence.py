"""Files of tensors appear whole or not at all."""

from __future__ import annotations

import errno
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import SafetensorError

from ssi_models import get_model, load_model
from ssi_models.persistence import load_tensors, save_tensors
from ssi_models.training.preferences import Preferences


@pytest.mark.parametrize(
    ("reason", "code", "said"),
    [
        ("I/O error: No space left on device (os error 28)", errno.ENOSPC, "No space left"),
        ("invalid header", errno.EIO, "invalid header"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(reason, code, said, tmp_path, monkeypatch):
    def full(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise SafetensorError(reason)

    monkeypatch.setattr("ssi_models.persistence.save_file", full)
    with pytest.raises(OSError, match=said) as caught:
        save_tensors(tmp_path / "x.safetensors", {}, {"a": np.zeros(1, np.float32)})
    assert (caught.value.errno, caught.value.filename) == (code, str(tmp_path / "x.safetensors"))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_of_a_file_is_removed(tmp_path):
    """safetensors writes a file by a name of its own first. The process dies while it does."""
    path, arrays = tmp_path / "x.safetensors", {"a": np.zeros(1, np.float32)}
    program = f"""
import os, signal
from pathlib import Path
import numpy as np
from ssi_models import persistence

def die(tensors, path, metadata):
    Path(path).with_name(".tmpAb12Cd").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGTERM)

persistence.save_file = die
persistence.save_tensors({str(path)!r}, {{}}, {{"a": np.zeros(1, np.float32)}})
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode != 0
    assert list(tmp_path.rglob(".tmp*"))
    save_tensors(path, {}, arrays)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_written_into_a_new_folder_and_through_a_link(tmp_path):
    path = tmp_path / "new" / "x.safetensors"
    save_tensors(path, {}, {"a": np.zeros(1, np.float32)})
    link = tmp_path / "link.safetensors"
    link.symlink_to(path)
    save_tensors(link, {}, {"a": np.ones(1, np.float32)})
    assert link.is_symlink()
    assert load_tensors(path)[1]["a"].tolist() == [1]


def test_any_changed_byte_of_a_file_is_noticed(tmp_path):
    path, arrays = tmp_path / "x.safetensors", {"a": np.arange(4, dtype=np.float32)}
    save_tensors(path, {"n": 3, "params": {7: "x"}}, arrays)
    assert load_tensors(path)[0] == {"n": 3, "params": {"7": "x"}}
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with suppress(ValueError):
            header, tensors = load_tensors(path)
            # Blanks that fill the header up, or the name of the digest.
            assert (header["n"], header["params"]) == (3, {"7": "x"})
            assert tensors["a"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.ones(9), "array in_degree holds float64 with 1 axes, must hold float32"),
        (np.array([np.nan], np.float32), "array in_degree holds a value that is not finite"),
        ([1.0], "array in_degree is missing"),
    ],
)
def test_arrays_that_could_not_be_read_again_are_not_written(array, said, tmp_path):
    model, X = get_model("popularity")(), sp.csr_matrix(np.eye(3, dtype=np.float32))
    model.fit(X, X, Preferences.from_pairs([0], [1], n_queries=3, n_documents=3))
    model.in_degree_ = array
    with pytest.raises(ValueError, match=f"Popularity: {said}.*; fit must set each array NAME_"):
        model.save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("param", "value", "said"),
    [
        ("fold_in_iterations", 2**31, "fold_in_iterations must be 10,000 or fewer"),
        ("alpha", 2**70, f"alpha must be a number, got {2**70}"),
        ("n_topics", None, "n_topics must be a whole number, got None"),
        ("n_topics", 2.5, "n_topics must be a whole number, got 2.5"),
        ("n_topics", True, "n_topics must be a whole number, got True"),
        ("beta", float("nan"), "beta must be a number, got nan"),
        ("beta", True, "beta must be a number, got True"),
    ],
)
def test_numbers_that_no_kernel_comes_to_an_end_with(param, value, said, tmp_path):
    path = tmp_path / "model.safetensors"
    counts = sp.csr_matrix(np.eye(3, dtype=np.int32))
    preferences = Preferences.from_pairs(np.arange(3), np.arange(3), n_queries=3, n_documents=3)
    get_model("plsa")(n_topics=2, iterations=1).fit(counts, counts, preferences).save(path)
    header, tensors = load_tensors(path)
    assert param in header["params"]
    save_tensors(path, header | {"params": {**header["params"], param: value}}, tensors)
    with pytest.raises(ValueError, match=rf"model\.safetensors: .*{said}"):
        load_model(path)


def test_more_feedback_than_there_are_documents(tmp_path):
    path = tmp_path / "model.safetensors"
    D = sp.csr_matrix(np.eye(3, dtype=np.float32))
    preferences = Preferences.from_pairs(np.arange(3), np.arange(3), n_queries=3, n_documents=3)
    model = get_model("query-expansion")(beta=0.5, n_expansion=3).fit(D, D, preferences)
    model.save(path)
    header, tensors = load_tensors(path)
    save_tensors(path, header, {**tensors, "n_expansion": np.array([2**40])})
    n = np.arange(3)
    np.testing.assert_array_equal(load_model(path).score(D, D, n, n), model.score(D, D, n, n))


def test_several_rates_where_one_is_usual_are_read_again(tmp_path):
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    pairs = Preferences.from_pairs(np.arange(4), np.arange(4), n_queries=4, n_documents=4)
    model = get_model("diagonal")(learning_rate=(0.1, 0.03), margin=0.3, max_epochs=1)
    model.fit(X, X, pairs).save(tmp_path / "model")
    assert load_model(tmp_path / "model").get_params()["learning_rate"] == (0.1, 0.03)


def test_others_may_read_a_model_like_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    save_tensors(tmp_path / "x.safetensors", {}, {"a": np.zeros(1)})
    modes = {(tmp_path / name).stat().st_mode for name in ("plain", "x.safetensors")}
    assert len(modes) == 1
