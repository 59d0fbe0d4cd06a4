"""Files of rankers that were changed: refused with their name, never run into by a kernel."""

import json

import numpy as np
import pytest
from safetensors.numpy import load, save

from letor.dataset import RankingData
from letor.errors import InputError
from letor.rankers.registry import get_ranker, load_ranker

RANKERS = {
    "rankboost": {"n_rounds": 5},
    "adarank": {"n_rounds": 3},
    "ranknet": {"n_epochs": 2, "hidden": 3},
    "listnet": {"n_epochs": 2},
    "coordinate-ascent": {"n_restarts": 1, "n_sweeps": 2},
    "lambdamart": {"n_estimators": 3, "min_data_in_leaf": 1},
}
N_CASES = 150
HOSTILE = (-1, 2**31 - 1, 2**40, -(2**62), 0, 255, float("nan"), float("inf"))


def rows():
    rng = np.random.default_rng(0)
    X = rng.random((40, 4), dtype=np.float32)
    y = (X[:, 0] > 0.5).astype(np.float32)
    return RankingData.from_rows(X, y, np.repeat(np.arange(8), 5), column_names=list("abcd"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankers")
    for name, params in RANKERS.items():
        get_ranker(name)(**params).fit(rows()).save(folder / name)
    return folder


def loads_or_is_refused(folder):
    """Whether it loads; then it must score as well."""
    try:
        ranker = load_ranker(folder)
        scores = ranker.predict(rows())
    except InputError as error:
        said = str(error)
    else:
        assert scores.shape == (40,)
        return True
    assert folder.name in said or "column" in said
    return False


@pytest.mark.parametrize("name", ["rankboost", "adarank", "ranknet", "listnet"])
def test_changed_arrays(saved, tmp_path, name):
    rng = np.random.default_rng(1)
    folder = tmp_path / name
    folder.mkdir()
    (folder / "ranker.json").write_bytes((saved / name / "ranker.json").read_bytes())
    original = (saved / name / "model.safetensors").read_bytes()
    refused = 0
    for _ in range(N_CASES):
        arrays = {key: array.copy() for key, array in load(original).items()}
        key = str(rng.choice(sorted(arrays)))
        array = arrays[key].reshape(-1)
        change = rng.integers(4)
        if change == 0 and array.size:
            with np.errstate(invalid="ignore"):
                array[rng.integers(array.size)] = np.float64(rng.choice(HOSTILE)).astype(
                    array.dtype
                )
        elif change == 1:
            arrays[key] = array[: rng.integers(array.size + 1)].copy()
        elif change == 2:
            arrays[key] = arrays[key].astype(rng.choice(["int8", "float32", "int64", "uint8"]))
        else:
            del arrays[key]
        (folder / "model.safetensors").write_bytes(save(arrays))
        refused += not loads_or_is_refused(folder)
    assert refused > N_CASES / 3


@pytest.mark.parametrize("name", RANKERS)
def test_changed_descriptions(saved, tmp_path, name):
    rng = np.random.default_rng(2)
    folder = tmp_path / name
    folder.mkdir()
    for file in (saved / name).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    text = (folder / "ranker.json").read_text()
    others = [None, -1, 2**70, "x", [], {}, [[1]], 1.5, True]
    refused = 0
    for _ in range(N_CASES):
        described = json.loads(text)
        place = described
        while True:  # somewhere in it
            keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
            key = keys[rng.integers(len(keys))]
            if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.4:
                break
            place = place[key]
        place[key] = others[rng.integers(len(others))]
        (folder / "ranker.json").write_text(json.dumps(described))
        refused += not loads_or_is_refused(folder)
    for broken in ("", "[" * 100_000, "\x00", "[]", text[: len(text) // 2]):
        (folder / "ranker.json").write_text(broken)
        assert not loads_or_is_refused(folder)
    assert refused > N_CASES / 5
