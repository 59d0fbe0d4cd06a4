"""What is told of models before they are fitted."""

from __future__ import annotations

import numpy as np
import pytest
from toys import run as command
from toys import toy

from ltr_features.columns import fit_size
from ltr_features.columns.context import ColumnContext, make_workspace
from ltr_features.columns.fit_size import FitSize
from ltr_features.columns.learned import LearnedColumn
from ltr_features.text.collection import Judgements

N_QUERIES, N_DOCUMENTS, PER_QUERY = 40, 40, 10
#: A fit that ends soon.
QUICK = [f"--param=ssi.{key}" for key in ("max_epochs=1", "init=identity", "margin=0.3")]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Long documents with short titles: of 3,000, 5 and 1 different words."""
    rng = np.random.default_rng(0)

    def texts(length):
        rows = (rng.choice(6000, length, replace=False) for _ in range(N_DOCUMENTS))
        return [" ".join(f"word{n}" for n in row) for row in rows]

    relevant = [rng.choice(N_DOCUMENTS, PER_QUERY, replace=False) for _ in range(N_QUERIES)]
    query = np.repeat(np.arange(N_QUERIES), PER_QUERY)
    judged = Judgements(query, np.concatenate(relevant), np.ones(len(query), np.int64))
    fields = {"body": texts(3000), "description": texts(5), "title": texts(1)}
    queries = [f"word{n} word{n + 1}" for n in range(N_QUERIES)]
    folder = tmp_path_factory.mktemp("long") / "workspace"
    return make_workspace(toy(fields, queries, judged), folder)


@pytest.fixture(autouse=True)
def seconds_are_long(monkeypatch):
    """One epoch of the long documents counts as a long fit."""
    monkeypatch.setattr(fit_size, "_LONG", 5.0)


def build(workspace, out, *options):
    arguments = ["--workspace", workspace, "--family", "vsm", "--model", "ssi", *QUICK]
    return command("columns", "build", *arguments, "--out", out, *options).stderr.splitlines()


def test_long_documents_are_told_before_models_are_fitted(workspace, tmp_path):
    size, advice = build(workspace, tmp_path / "folds")[:2]
    # Of five folds, three train: 240 of 400 pairs, for a model of all and one without each part.
    assert size.startswith("ssi: 20 models to fit in 5 folds, on up to 240 relevant pairs; ")
    assert size.endswith("documents have 3,003 different words on average, queries 2")
    assert advice.startswith("ssi: this may take")
    assert "keep the 200 words of the largest weights by --recipe ssi.heaviest=200 or" in advice
    assert advice.endswith("--recipe ssi.field=description (5 words), title (1)")
    fewer = build(workspace, tmp_path / "fewer", "--recipe=ssi.heaviest=200")
    assert fewer[0].endswith("documents have 200 different words on average, queries 2")
    assert not any("may take" in line for line in fewer)


def test_the_size_of_a_short_field_is_told_without_advice(workspace, tmp_path):
    option = "--recipe=ssi.field=title"
    told = build(workspace, tmp_path / "a", option)
    assert "documents have 1 different word on average" in told[0]
    assert not any("may take" in line for line in told)
    assert not any("to fit" in line for line in build(workspace, tmp_path / "b", option, "--quiet"))


def test_one_model_is_told_with_its_own_option(workspace, tmp_path):
    out = tmp_path / "ssi.safetensors"
    params = [option.replace("ssi.", "") for option in QUICK]
    told = command("models", "fit", "ssi", "--workspace", workspace, *params, "--out", out).stderr
    assert told.startswith("ssi: 1 model to fit, on up to 400 relevant pairs; ")
    assert "--heaviest 200 or" in told.splitlines()[1]
    assert "--field description (5 words), title (1)" in told.splitlines()[1]


def test_the_documents_that_a_model_reads_are_told_not_all(tmp_path):
    """Transcripts of 300 words among pages of two: only the former are relevant to a query."""
    texts = [" ".join(f"word{n}" for n in range(300))] * 4 + ["short page"] * 96
    judged = Judgements(np.arange(8), np.arange(8) % 4, np.ones(8, np.int64))
    queries = [f"word{n}" for n in range(8)]
    context = ColumnContext.of(toy({"body": texts}, queries, judged))
    size = FitSize.of(context, LearnedColumn("ssi", "ssi"), [[np.arange(8)]])
    assert str(size).endswith("relevant documents have 300 different words on average, queries 1")
    assert size.words == 8 * 3 * (2 * 300 + 1)  # three models, each pair with two documents
