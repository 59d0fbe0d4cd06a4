"""``models fit``, and what the model is then used for."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from toys import done, refused, run, topics
from typer.testing import CliRunner

import ltr_features.studies.progress
from letor.column_names import read_rows, write_rows
from letor.errors import LetorWarning
from letor.svmlight import read_letor
from ltr_features.cli import app
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.term_space import query_row
from ltr_features.columns.trained import TrainedColumn
from ltr_features.text.collection import Judgements
from ssi_models.registry import load_model


def test_models_are_fitted_and_never_score_their_own_queries(workspace, tmp_path):
    queries, model = tmp_path / "train.ids", tmp_path / "ssi.safetensors"
    queries.write_text("".join(f"q{i}\n" for i in range(30)))
    text = done("models", "fit", "ssi", "--workspace", workspace, "--queries", queries, "--out",
                model, "--param", "rank=4", "--param", "max_epochs=2",
                "--terms", "both", "--heaviest", 30)  # fmt: skip
    assert "30 training queries" in text
    told = done("models", "info", model)
    kept = re.search(r"^MAP on held-out training queries: .*$", told, re.M)
    assert kept[0] in text.splitlines()
    assert "rank = 4" in told
    assert "field: whole\nterms: both\nmin document frequency: 1\nheaviest: 30\n" in told
    done("columns", "build", "--workspace", workspace, "--family", "vsm", "--out",
         tmp_path / "all.txt")  # fmt: skip
    rows = read_rows(tmp_path / "all.txt")
    unseen = [q for q in rows.query_ids if int(q[1:]) >= 30]
    write_rows(rows.select_queries(unseen), tmp_path / "unseen.txt")
    append = ("--workspace", workspace, "--model-file", model, "--out", tmp_path / "more.txt")
    assert "2: ssi" in done("columns", "append", tmp_path / "unseen.txt", *append)
    assert np.ptp(read_letor(tmp_path / "more.txt").column("2")) > 0
    message = refused("columns", "append", tmp_path / "all.txt", *append)
    assert "trained on judgements of 30 of the 40 queries to be scored" in message
    (tmp_path / "ssi.column.json").unlink()
    assert "it says on whose judgements" in refused(
        "columns", "append", tmp_path / "unseen.txt", *append
    )


def test_a_model_learns_from_no_other_judgements_than_those_of_its_queries(tmp_path):
    whole = topics()
    judged, few = whole.judgements, whole.judgements.query < 18
    known = Judgements(judged.query[few], judged.document[few], judged.grade[few])
    (tmp_path / "train.ids").write_text("".join(f"q{i}\n" for i in range(18)))
    fit = ("models", "fit", "ssi", "--param", "rank=4", "--param", "max_epochs=1")
    own = ("--queries", tmp_path / "train.ids")
    made = []
    for name, collection in (("whole", whole), ("known", replace(whole, judgements=known))):
        make_workspace(collection, tmp_path / name)
        for given in (own, ()):
            out = tmp_path / f"{name}-{len(given)}.safetensors"
            done(*fit, "--workspace", tmp_path / name, *given, "--out", out)
            made.append(out.read_bytes())
    assert made[0] == made[2]
    assert made[0] != made[1]


def test_a_model_of_queries_of_the_same_text_is_told(tmp_path):
    make_workspace(topics(), tmp_path / "w")  # whose last six queries are the first six
    (tmp_path / "train.ids").write_text("".join(f"q{i}\n" for i in range(18)))
    with_texts = ("--workspace", tmp_path / "w", "--out")
    model, table = tmp_path / "ssi.safetensors", tmp_path / "all.txt"
    done("models", "fit", "ssi", "--queries", tmp_path / "train.ids", *with_texts, model,
         "--param", "rank=4", "--param", "max_epochs=1")  # fmt: skip
    done("columns", "build", "--family", "vsm", *with_texts, table)
    rows = read_rows(table)
    write_rows(rows.select_queries([f"q{i}" for i in range(18, 24)]), tmp_path / "others.txt")
    append = ("columns", "append", tmp_path / "others.txt", "--model-file", model)
    with pytest.warns(LetorWarning, match=r"the same text as 6 of those .*\(q18, q19, q20, "):
        done(*append, *with_texts, tmp_path / "more.txt")


def test_whole_groups_of_queries_are_held_out(workspace, tmp_path):
    collection = topics()
    groups = [f"g{row % 6}" for row in range(collection.n_queries)]
    make_workspace(replace(collection, query_groups=groups), tmp_path / "w")
    params = {"rank": 4, "max_epochs": 2}
    options = [text for key, value in params.items() for text in ("--param", f"{key}={value}")]
    out = tmp_path / "ssi.safetensors"
    fit = ("models", "fit", "ssi", *options, "--workspace")
    context = open_workspace(tmp_path / "w")
    made = []
    for by_group in (True, False):
        told = run(*fit, tmp_path / "w", *(["--by-group"] * by_group), "--out", out).stderr
        assert ("24 of 24 training queries share their group with others" in told) is not by_group
        recipe = LearnedColumn("ssi", "ssi", params)
        folder = tmp_path / f"models-{by_group}"
        TrainedColumn(context, recipe, folder, hold_out_groups=by_group).fitted(np.arange(24))
        assert out.read_bytes() == next(folder.glob("*.safetensors")).read_bytes()
        made.append(out.read_bytes())
    assert made[0] != made[1]
    alone = refused("models", "fit", "lsa", "--workspace", workspace, "--by-group", "--out", out)
    assert alone == "--by-group: lsa learns from documents alone; leave it out"
    assert "has no groups of queries" in refused(*fit, workspace, "--by-group", "--out", out)
    make_workspace(replace(collection, query_groups=["g"] * 24), tmp_path / "one")
    one = refused(*fit, tmp_path / "one", "--by-group", "--out", out)
    assert one.startswith("--by-group: 24 training queries with a relevant document, all of one ")


def test_groups_do_not_matter_where_no_queries_are_held_out(tmp_path):
    collection = topics()
    texts = [f"{text} own{row}" for row, text in enumerate(collection.query_texts)]
    groups = [f"g{row % 6}" for row in range(collection.n_queries)]
    make_workspace(replace(collection, query_texts=texts, query_groups=groups), tmp_path / "w")
    with_options = ("--workspace", tmp_path / "w", "--out", tmp_path / "a.safetensors", "--param")
    for model, *options in (
        ("ssi", "rank=4", "--param", "max_epochs=1", "--param", "hold_out=pairs"),
        ("cl-lsa", "word_weight=0.5"),
        ("tfidf-popularity", "threads=1"),
    ):
        fit = ("models", "fit", model, *with_options, *options)
        told = refused(*fit, "--by-group")
        assert told.startswith(f"--by-group: {model}, with these parameters, holds out no queries")
        said = run(*fit)
        assert "share their group" not in said.stderr
        held_out = "MAP on held-out pairs of training queries: "
        assert (held_out in said.stdout) is (model == "ssi")


def test_the_former_name_of_a_field_is_taken_with_a_warning(workspace, tmp_path):
    model = tmp_path / "lsi.safetensors"
    with pytest.warns(FutureWarning, match="--stream is now --field"):
        done("models", "fit", "lsi", "--workspace", workspace, "--stream", "title", "--out", model,
             "--param", "rank=4")  # fmt: skip
    assert json.loads((tmp_path / "lsi.column.json").read_text())["recipe"]["field"] == "title"
    both = ("--stream", "title", "--field", "body")
    assert "and both are given" in refused(
        "models", "fit", "lsi", "--workspace", workspace, *both, "--out", model
    )


def test_a_model_of_parts_is_fitted_appended_and_explained(workspace, tmp_path):
    model = tmp_path / "lsi.safetensors"
    said = done("models", "fit", "lsi", "--workspace", workspace, "--terms", "both", "--out", model,
         "--param", "rank=4")  # fmt: skip
    assert "lsi, documents alone: " in said
    assert json.loads((tmp_path / "lsi.column.json").read_text())["recipe"]["terms"] == "both"
    done("columns", "build", "--workspace", workspace, "--family", "vsm", "--out",
         tmp_path / "a.txt")  # fmt: skip
    done("columns", "append", tmp_path / "a.txt", "--workspace", workspace, "--model-file", model,
         "--out", tmp_path / "b.txt")  # fmt: skip
    notes = read_rows(tmp_path / "b.txt").provenance["lsi"]
    assert notes["description"].endswith("; terms: words and letter trigrams")
    (line,) = done("explain", model, "tpoic3wrod2", "--count", 4).splitlines()
    assert line.startswith("tpoic3wrod2 matches: ")
    assert "3:" in line
    # A known word is a query with its trigrams, too, as it is when the model scores it.
    fitted = load_model(model)
    row = query_row(fitted.vocabulary_, fitted.weighting_, ["topic3word2"])
    near = [f"{fitted.vocabulary_[j]} {x:.3f}" for j, x in fitted.nearest_words_of_text(row, 4)]
    (line,) = done("explain", model, "topic3word2", "--count", 4).splitlines()
    assert line == f"topic3word2 matches: {', '.join(near)}"
    assert "'xylophone' is not a word of the model" in refused("explain", model, "xylophone")
    bad = ["models", "fit", "lsi", "--workspace", workspace, "--terms", "letters", "--out", model]
    result = CliRunner().invoke(app, [str(a) for a in bad])
    assert result.exit_code == 2
    assert "letter-trigrams" in result.output


def test_files_of_training_queries_are_checked_line_by_line(workspace, tmp_path):
    queries, fit = tmp_path / "queries.txt", ("models", "fit", "ssi", "--workspace", workspace)
    fit = (*fit, "--out", tmp_path / "m.safetensors", "--queries", queries)
    said = refused("models", "fit", "lsi", *fit[3:])
    assert "--queries: lsi learns from documents alone; leave it out" in said
    queries.write_text("q1\n\nq999\n")
    assert "queries.txt, line 3: the workspace has no query 'q999'" in refused(*fit)
    queries.write_text("\n")
    assert "queries.txt: no query id" in refused(*fit)


def test_an_interrupted_fit_goes_on_where_it_was(workspace, tmp_path, monkeypatch):
    """Without going through the epochs that it had finished; the file is the same."""
    training = ("rank=2", "max_epochs=6", "n_negatives=8", "batch_size=16")
    options = [f"--param={setting}" for setting in training]
    fit = ("models", "fit", "ssi", "--workspace", workspace, *options, "--out")
    numbers: list[int] = []

    def epoch(_, model, event):
        numbers.append(event.number)
        if len(numbers) == 4:
            raise KeyboardInterrupt

    whole, cut = tmp_path / "whole.safetensors", tmp_path / "cut.safetensors"
    done(*fit, whole)
    monkeypatch.setattr(ltr_features.studies.progress.Reporter, "epoch", epoch)
    assert CliRunner().invoke(app, [str(a) for a in (*fit, cut)]).exit_code != 0
    assert any((tmp_path / "cut.safetensors.parts").iterdir())
    until = numbers.copy()
    done(*fit, cut)
    assert numbers[len(until)] == until[-1] + 1
    assert cut.read_bytes() == whole.read_bytes()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        f"{n}.{end}" for n in ("whole", "cut") for end in ("safetensors", "column.json")
    }
