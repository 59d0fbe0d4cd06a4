"""``--scheduler``: commands whose work is done by Dask workers."""

from __future__ import annotations

import pytest
from folders import different
from toys import done, refused

from letor.files import LOCKED
from ltr_features.sources.wikipedia import excerpt_path


def test_nobody_answers_at_an_address(workspace, tmp_path):
    out = tmp_path / "rows.parquet"
    told = refused("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", out,
                   "--scheduler", "nowhere")  # fmt: skip
    assert told.startswith("--scheduler nowhere: no Dask scheduler answers there")
    assert not out.exists()


@pytest.mark.parametrize("address", ["", "local:0", "local:-1", "local:", "local:2x"])
def test_an_address_without_workers_is_refused(workspace, tmp_path, address):
    out = tmp_path / "rows.parquet"
    told = refused("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", out,
                   "--scheduler", address)  # fmt: skip
    assert told.startswith(f"--scheduler {address}: ")
    assert "local:2" in told
    assert list(tmp_path.iterdir()) == []


def test_a_refused_scheduler_leaves_no_empty_folders(workspace, tmp_path):
    scheduler = ("--scheduler", "local:0")
    model, folds = tmp_path / "lsi.safetensors", tmp_path / "folds"
    refused("models", "fit", "lsi", "--workspace", workspace, "--out", model, *scheduler)
    refused("wikipedia", excerpt_path(), "--out", tmp_path / "kb", *scheduler)
    refused("columns", "build", "--workspace", workspace, "--model", "lsi", "--out", folds,
            *scheduler)  # fmt: skip
    assert [path.name for path in tmp_path.rglob("*")] == ["folds", LOCKED]


@pytest.mark.parametrize("place", ["out", "parts", "url"])
def test_workers_make_the_same_files_wherever_they_put_parts(workspace, tmp_path, workers, place):
    parts = tmp_path / "parts"
    parts.mkdir()
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm")
    given = {"out": (), "parts": ("--parts", parts), "url": ("--parts", f"file://{parts}")}
    spread = ("--scheduler", workers.scheduler_address, *given[place])
    models = ("--model", "lsi", "--param", "lsi.rank=4", "--model", "ssi", "--param", "ssi.rank=4",
              "--param", "ssi.max_epochs=2", "--param", "ssi.list_share=.5",
              "--folds", 4)  # fmt: skip
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "rows.parquet").write_text("of an earlier build, which is replaced")
    for given, name in (((), "rows.parquet"), (models, "folds")):
        done(*build, *given, "--out", tmp_path / "here" / name)
        done(*build, *given, "--out", tmp_path / "there" / name, *spread)
    assert different(tmp_path / "here", tmp_path / "there") == set()
    assert not list(parts.iterdir())
