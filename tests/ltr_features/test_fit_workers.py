"""`models fit --scheduler`: the model of one process, whatever happens to the workers."""

import sys
from pathlib import Path

import numpy as np
import pytest
from killed_worker import killed_worker
from toys import run, toy

from letor.errors import InputError
from ltr_features import column_workers
from ltr_features.columns.context import make_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.part_store import PartFolder
from ltr_features.text.collection import Judgements

N = 400
#: More pairs than an E-step has in one piece.
N_PAIRS = 140_000
WORDS = [f"word{i}" for i in range(50)]
SMALL = {
    "bltm": ["n_topics=3", "iterations=7", "lambda2=0.5"],
    "wtm": ["iterations=2", "lambda2=0.5"],
    "s2net": ["rank=3", "optimizer=l-bfgs", "max_epochs=2"],
    "ssi": ["rank=3", "max_epochs=1", "margin=0.3"],
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    rng = np.random.default_rng(0)
    texts, queries = ([" ".join(rng.choice(WORDS, n)) for _ in range(N)] for n in (6, 2))
    query, document = np.divmod(np.sort(rng.choice(N * N, N_PAIRS, replace=False)), N)
    judged = Judgements(query, document, np.ones(N_PAIRS, np.int64))
    collection = toy({"body": texts}, queries, judged)
    return make_workspace(collection, tmp_path_factory.mktemp("fits") / "workspace")


def fit(workspace, model, out, *given):
    params = [part for value in SMALL[model] for part in ("--param", value)]
    if model in ("s2net", "ssi"):  # these take their time for many pairs
        some = out.with_name("queries.txt")
        some.write_text("".join(f"q{i}\n" for i in range(20)))
        params += ["--queries", some]
    arguments = ["models", "fit", model, "--workspace", workspace, *params, "--out", out, *given]
    run(*arguments)
    return out.read_bytes()


@pytest.mark.parametrize("model", SMALL)
def test_models_are_those_of_one_process(model, workspace, workers, tmp_path):
    there, here = tmp_path / "there.safetensors", tmp_path / "here.safetensors"
    made = fit(workspace, model, there, "--scheduler", workers.scheduler_address)
    assert made == fit(workspace, model, here)
    described = there.with_suffix(".column.json"), here.with_suffix(".column.json")
    assert described[0].read_bytes() == described[1].read_bytes()
    assert not (tmp_path / "there.safetensors.parts").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_worker_that_is_killed_in_em_changes_nothing(workspace, workers, tmp_path):
    out = tmp_path / "there.safetensors"
    sums = "pieces/em-*/sums-000003-*"
    with killed_worker(workers, lambda: list(Path(f"{out}.parts").glob(sums))):
        made = fit(workspace, "bltm", out, "--scheduler", workers.scheduler_address)
    assert made == fit(workspace, "bltm", tmp_path / "here.safetensors")


def test_a_worker_with_other_code_of_a_model_is_refused(workspace, tmp_path):
    with pytest.raises(InputError, match=r"worker on .*: the code of .*LowRankSSI is not that of"):
        column_workers._fit(
            column_workers._seen(workspace), "other code", LearnedColumn("ssi", "ssi"),
            PartFolder(tmp_path), False, [np.arange(3)],
        )  # fmt: skip
