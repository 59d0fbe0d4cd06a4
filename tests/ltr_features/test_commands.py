"""The commands one after the other, from a folder of text to a scored ranking."""

from __future__ import annotations

import gzip
import io
import json
import re
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pandas as pd
import pytest
from folders import different
from rich.console import Console
from toys import done, refused, run, topics
from typer.main import get_command
from typer.testing import CliRunner

import ltr_features.studies.progress
from letor import plugins
from letor.column_names import read_rows, write_rows
from letor.errors import InputError, LetorWarning
from letor.evaluation import evaluate, side_by_side
from letor.files import LOCKED
from letor.folds import k_fold
from letor.rankers import load_ranker
from letor.svmlight import names_path, read_letor
from letor.trec import read_qrels, read_run, run_of
from ltr_base.machine import temporary_paths
from ltr_features.cli import app
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.registry import is_registered
from ltr_features.columns.term_space import VectorSpace, query_row
from ltr_features.commands.options import settings
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.sources.registry import sources
from ltr_features.sources.wikipedia import excerpt_path
from ssi_models.registry import load_model

N_TOPICS = 8


def commands(group=None, path=()):
    """The names of all commands, those of groups with the group's."""
    group = get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


COMMANDS = list(commands())


@pytest.fixture(scope="module")
def beir(tmp_path_factory):
    """Documents and queries of eight topics, two queries each."""
    folder = tmp_path_factory.mktemp("beir")
    (folder / "qrels").mkdir()
    rng = np.random.default_rng(0)
    documents, queries, qrels = [], [], ["query-id\tcorpus-id\tscore"]
    for d in range(80):
        words = [f"topic{d % N_TOPICS}word{i}" for i in rng.integers(6, size=8)]
        words += [f"common{i}" for i in rng.integers(9, size=6)]
        documents.append({"_id": f"d{d}", "title": words[0], "text": " ".join(words)})
    for q in range(5 * N_TOPICS):
        text = f"topic{q % N_TOPICS}word{q % 6} common{q % 9} common{(q + 3) % 9}"
        queries.append({"_id": f"q{q}", "text": text})
        qrels += [f"q{q}\td{d}\t1" for d in range(q % N_TOPICS, 80, N_TOPICS)]
    for name, records in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    (folder / "qrels" / "test.tsv").write_text("\n".join(qrels) + "\n")
    return folder


@pytest.fixture(scope="module")
def workspace(beir, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "workspace"
    done("index", "beir", f"folder={beir}", "--out", out)
    return out


def test_index_says_what_it_read(beir, tmp_path):
    text = done("index", "beir", f"folder={beir}", "splits=['test']", "--out", tmp_path / "w")
    assert "fields body, title" in text
    assert "documents: 80" in text
    assert "judged pairs: 400" in text


def test_index_says_that_text_cannot_hold_ids_with_blanks(tmp_path):
    (tmp_path / "d.csv").write_text("id,text,query,label\na 1,red shoe,shoe,1\nb,hat,hat,1\n")
    table = [f"documents={tmp_path / 'd.csv'}", "judgement_columns.text=query"]
    told = run("index", "table", *table, "--out", tmp_path / "w").stderr
    assert "note: document id 'a 1': LETOR text and TREC files need ids without blanks" in told


def test_text_columns_models_ranker_scores_and_measures(workspace, tmp_path):
    folds = tmp_path / "folds"
    built = run(
        "columns", "build", "--workspace", workspace, "--family", "letor46", "--family", "vsm",
        "--model", "ssi", "--param", "ssi.rank=4", "--param", "ssi.max_epochs=2",
        "--model", "lsi", "--param", "lsi.rank=4",
        "--folds", 4, "--depth", 20, "--out", folds,
    )  # fmt: skip
    assert "Fold4: 49 columns" in built.stdout
    size = sum(file.stat().st_size for file in (folds / "models").iterdir())
    assert f"13 models, {size / 1e3:,.1f} kB: {folds / 'models'}; taken again" in built.stderr
    train, test = (read_rows(folds / "Fold2" / f"{part}.txt") for part in ("train", "test"))
    assert train.column_names[-3:] == ["vsm", "ssi", "lsi"]
    assert "out of fold" in train.provenance["ssi"]["trained on"]
    assert "no judgement" in train.provenance["lsi"]["trained on"]
    assert not set(train.query_ids) & set(test.query_ids)

    ranker = tmp_path / "ranker"
    data = folds / "Fold2"
    text = done(
        "rank", "train", data / "train.txt", "--vali", data / "vali.txt", "--out", ranker,
        "--param", "normalise=none",
        "--param", "n_estimators=10", "--param", "min_data_in_leaf=5",
    )  # fmt: skip
    assert "lambdamart" in text
    scores, ranking = tmp_path / "scores.txt", tmp_path / "test.run"
    done("rank", "score", ranker, data / "test.txt", "--out", scores, "--run", ranking)
    packed = scores.with_name("packed.txt.gz")
    done("rank", "score", ranker, data / "test.txt", "--out", packed)
    assert gzip.decompress(packed.read_bytes()) == scores.read_bytes()
    for option, name in (("--out", "s.parquet"), ("--out", "s.csv.gz"), ("--run", "r.jsonl")):
        said = refused("rank", "score", ranker, data / "test.txt", option, scores.with_name(name))
        assert "are written as text, a line each, not as ." in said
    printed = done("rank", "score", ranker, data / "test.txt")
    for target, file in (("opensearch", "model.json"), ("onnx", "model.onnx")):
        done("rank", "export", ranker, "--target", target, "--out", tmp_path / file)
        assert b"ltr-features" in (tmp_path / file).read_bytes()
    assert "use one of opensearch, elasticsearch, solr, vespa, onnx" in refused(
        "rank", "export", ranker, "--target", "lucene", "--out", tmp_path / "model"
    )
    assert printed == scores.read_text()
    assert len(printed.splitlines()) == len(test) == len(read_run(ranking))
    assert "NDCG@10" in done("measure", data / "test.txt", "--scores", scores)
    assert "lambdamart" in done("rank", "list")


def test_recipes_of_columns_are_given_by_model(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out",
             tmp_path / "folds", "--model", "letters=vsm", "--model", "lsi", "--param",
             "lsi.rank=4", "--folds", 4, "--depth", 20)  # fmt: skip
    done(
        *build, "--option", "vsm.terms=letter-trigrams", "--option", "vsm.min_document_frequency=2",
        "--recipe", "letters.terms=letter-trigrams", "--recipe", "letters.min_document_frequency=2",
        "--recipe", "lsi.terms=both", "--recipe", "lsi.field=title",
    )  # fmt: skip
    rows = read_rows(tmp_path / "folds" / "Fold1" / "test.txt")
    assert rows.column_names == ["vsm", "letters", "lsi"]
    np.testing.assert_array_equal(rows.X[:, 0], rows.X[:, 1])
    assert np.ptp(rows.X[:, 2]) > 0
    said = [rows.provenance[name]["description"] for name in rows.column_names]
    assert [text.partition("; terms: ")[2] for text in said] == [
        "letter trigrams", "letter trigrams", "words and letter trigrams"
    ]  # fmt: skip
    for setting, message in {
        "lsi.terms=letters": "--recipe lsi: terms must be 'words' or 'letter-trigrams' or 'both'",
        "lsi.min_document_frequency=0": "column 'lsi': min_document_frequency must be 1 or more",
        "lsi.min_document_frequency=x": "--recipe lsi: min_document_frequency must be a whole",
        "lsi.rank=4": "--recipe lsi has no setting 'rank'",
        "ssi.terms=both": "--recipe ssi.terms=both: no --model ssi is given; did you mean 'lsi'",
    }.items():
        assert message in refused(*build, "--recipe", setting)
    assert "vsm': terms must be" in refused(*build, "--option", "vsm.terms=letters")


def test_models_are_fitted_and_never_score_their_own_queries(workspace, tmp_path):
    queries, model = tmp_path / "train.ids", tmp_path / "ssi.safetensors"
    queries.write_text("".join(f"q{i}\n" for i in range(30)))
    text = done("models", "fit", "ssi", "--workspace", workspace, "--queries", queries, "--out",
                model, "--param", "rank=4", "--param", "max_epochs=2")  # fmt: skip
    assert "30 training queries" in text
    assert "rank = 4" in done("models", "info", model)
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


def test_conversions_keep_everything(workspace, tmp_path):
    text, table, again = tmp_path / "a.txt", tmp_path / "a.parquet", tmp_path / "c.txt.gz"
    done("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", text)
    done("convert", text, table)
    done("convert", table, again)
    first, last = read_rows(text), read_rows(again)
    np.testing.assert_array_equal(first.X, last.X)
    assert (first.column_names, first.query_ids) == (last.column_names, last.query_ids)
    assert first.provenance == last.provenance == read_rows(table).provenance
    done("convert", text, tmp_path / "a.qrels")
    np.testing.assert_array_equal(read_qrels(tmp_path / "a.qrels")["label"], first.y)
    (tmp_path / "scores").write_text("".join(f"{v}\n" for v in first.X[:, 0]))
    done("convert", text, tmp_path / "a.run", "--scores", tmp_path / "scores")
    assert len(read_run(tmp_path / "a.run")) == len(first)


def test_bad_requests_are_named(workspace, tmp_path):
    build = ("columns", "build", "--out", tmp_path / "x", "--workspace")
    assert "is not a workspace; make one" in refused(*build, tmp_path, "--family", "vsm")
    assert "name at least one --family or --model" in refused(*build, workspace)
    assert "no column family 'vms'; did you mean 'vsm'" in refused(
        *build, workspace, "--family", "vms"
    )
    assert "--option vsm2.x=1: no --family vsm2 is given; did you mean 'vsm'" in refused(
        *build, workspace, "--family", "vsm", "--option", "vsm2.x=1"
    )
    assert "there is no model 'sssi'; did you mean 'ssi'" in refused(
        *build, workspace, "--family", "vsm", "--model", "sssi"
    )
    assert "no source 'bier'; did you mean 'beir'" in refused(
        "index", "bier", "--out", tmp_path / "w"
    )
    assert "'nonsense' is not of the form KEY=VALUE" in refused("index", "beir", "nonsense")
    assert "say whose: folder=." in refused("index", "beir", ".")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "mine").write_text("precious")
    assert "not empty and holds no workspace; name another folder" in refused(
        "index", "collection", f"folder={workspace / 'collection'}", "--out", tmp_path / "w"
    )
    assert (tmp_path / "w" / "mine").read_text() == "precious"
    assert f"is a workspace; the folder of its collection is {workspace / 'collection'}" in refused(
        "index", "collection", f"folder={workspace}", "--out", tmp_path / "x"
    )
    assert "is a workspace, not a saved pipeline; make one of" in refused("serve", workspace)
    assert "holds no saved pipeline" in refused("serve", tmp_path)
    assert "is a file; a workspace is a folder" in refused(
        "index", "beir", "folder=absent", "--out", tmp_path / "w" / "mine"
    )
    file = tmp_path / "a.txt"
    file.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    assert "needs --scores" in refused("convert", file, tmp_path / "a.run")
    assert "no document ids" in refused("convert", file, tmp_path / "a.qrels")
    assert "is the input itself" in refused("convert", file, file)
    assert "there is no ranker 'lambdmart'; did you mean 'lambdamart'" in refused(
        "rank", "train", file, "--out", tmp_path / "r", "--ranker", "lambdmart"
    )
    assert "ranker 'lambdamart' has no parameter 'leaves'; did you mean 'num_leaves'" in refused(
        "rank", "train", file, "--out", tmp_path / "r", "--param", "leaves=3"
    )
    assert "is not a saved ranker" in refused("rank", "score", tmp_path, file)
    assert list(tmp_path.glob("x*")) == []


def test_no_command_replaces_its_input_and_each_tells_what_it_replaced(workspace, tmp_path):
    rows, ranker = tmp_path / "rows.txt", tmp_path / "ranker"
    done("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", rows)
    train = ("rank", "train", rows, "--ranker", "coordinate-ascent", "--param", "n_restarts=1")
    done(*train, "--out", ranker)
    commands = [
        ("rank", "score", ranker, rows),
        ("columns", "append", rows, "--workspace", workspace, "--family", "scores"),
        ("clicks", "simulate", rows, "--column", "vsm"),
        ("convert", rows),
    ]
    before = rows.read_bytes()
    for command in commands:
        out = (rows,) if command[0] == "convert" else ("--out", rows)
        assert f"{rows} is the input itself; name another" in refused(*command, *out)
    assert f"{rows} is the input itself" in refused(*commands[0], "--run", rows)
    for run_file in (tmp_path / "s.txt", tmp_path / "x" / ".." / "s.txt"):
        told = refused(*commands[0], "--out", tmp_path / "s.txt", "--run", run_file)
        assert told == f"{tmp_path / 's.txt'} is to be written twice; give each output its own name"
    assert not (tmp_path / "s.txt").exists()
    assert rows.read_bytes() == before
    scores = tmp_path / "scores.txt"
    for command, out in ((train, ranker), (commands[0], scores)):
        for _ in range(2):
            told = run(*command, "--out", out).stderr
        assert f"note: the former {out} is replaced" in told
    index = ("index", "collection", f"folder={workspace / 'collection'}", "--out", tmp_path / "w")
    assert "replaced" not in run(*index).stderr
    assert f"note: the former {tmp_path / 'w'} is replaced" in run(*index).stderr


def test_settings_without_or_with_a_needless_owner_are_answered_with_what_to_write(workspace):
    build = ("columns", "build", "--out", "x", "--workspace", workspace, "--model", "lsi")
    both = (*build, "--model", "ssi")
    assert "--param rank=5: write lsi.rank=5 or ssi.rank=5" in refused(*both, "--param", "rank=5")
    assert "'lsi' has no parameter 'rang'" in refused(*build, "--param", "rang=5")  # that of lsi
    assert "--option terms=both: no --family terms is given; there are none" in refused(
        *build, "--option", "terms=both"
    )
    assert "write vsm.terms=both or letor46.terms=both" in refused(
        *build, "--family", "vsm", "--family", "letor46", "--option", "terms=both"
    )
    assert "--param lsi.rank=5: write rank=5" in refused(
        "models", "fit", "lsi", "--workspace", workspace, "--out", "x.safetensors", "--param",
        "lsi.rank=5",
    )  # fmt: skip
    assert "--param listnet.n_epochs=5: write n_epochs=5" in refused(
        "rank", "train", "a.txt", "--ranker", "listnet", "--out", "x", "--param",
        "listnet.n_epochs=5",
    )  # fmt: skip


def test_what_a_killed_build_left_is_no_part_of_the_folds(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--model", "lsi", "--folds", 4, "--out")
    done(*build, tmp_path / "whole")
    (tmp_path / "folds" / "models").mkdir(parents=True)
    for target in (tmp_path / "folds" / "build.json", tmp_path / "folds" / "models" / "gone"):
        temporary_paths(target)[0].write_text("cut off")  # of a process that runs: this one
    done(*build, tmp_path / "folds")
    assert not different(tmp_path / "whole", tmp_path / "folds")


def test_too_few_folds_are_refused_with_the_reason(workspace, tmp_path):
    build = ("columns", "build", "--out", tmp_path / "x", "--workspace", workspace)
    said = refused(*build, "--model", "lsi", "--folds", 3)
    assert "3 folds: one part tests, one validates and the others train (two or more" in said
    assert "give 4 or more" in said
    said = refused(*build, "--family", "vsm", "--folds", 2)
    assert "2 folds: one part tests, one validates and the others train; give 3 or more" in said
    assert "3 folds" in done(*build, "--family", "vsm", "--folds", 3)


def test_the_help_of_index_names_every_source():
    """It is written by hand, as a list from the registry would make every command start later."""
    command = get_command(app).commands["index"]
    named = next(p.help for p in command.params if p.name == "source").split(", or")[0].split(", ")
    assert named == sources()


def test_columns_of_one_name_are_refused_before_the_work(workspace, tmp_path):
    twice = ("--family", "vsm", "--family", "vsm")
    said = refused("columns", "build", "--workspace", "nowhere", *twice, "--out", tmp_path / "a")
    assert "two columns are called vsm" in said


@pytest.mark.parametrize(
    ("option", "setting", "told"),
    [
        ("recipe", "field=nosuch", " has no field 'nosuch'; it has body, title, and 'whole'"),
        ("recipe", "min_document_frequency=999", "is 999, but no word occurs in more than "),
        ("param", "hold_out=pairs", "a fold holds out its training queries in parts"),
    ],
)
def test_what_no_model_can_learn_from_is_told_before_columns_are_computed(
    workspace, tmp_path, monkeypatch, option, setting, told
):
    monkeypatch.setattr(VectorSpace, "compute", None)
    built = ("--workspace", workspace, "--family", "vsm", "--model", "ssi")
    asked = (f"--{option}", f"ssi.{setting}", "--out", tmp_path / "folds")
    assert told in refused("columns", "build", *built, *asked)
    given = settings([setting], option)
    column = LearnedColumn("ssi", "ssi", **(given if option == "recipe" else {"params": given}))
    collection = open_workspace(workspace).collection
    builder = FeatureBuilder(["vsm"], [column])
    with pytest.raises(InputError, match=told):
        builder.folds(collection, k_fold(collection.query_ids, 5, seed=0))


def test_a_measure_that_there_is_not_is_told_before_rows_are_read(tmp_path):
    wrong = ("--param", "measure=ndcg@x", "--out", tmp_path / "ranker")
    said = refused("rank", "train", tmp_path / "nowhere.txt", *wrong)
    assert "measure 'ndcg@x' needs a positive cut-off" in said


def test_a_plug_in_that_cannot_be_used_is_in_nobody_s_way(monkeypatch):
    def points(group):
        return [EntryPoint("gone", "gone:Gone", group)]

    monkeypatch.setattr(plugins, "entry_points", points)
    families, rankers = run("columns", "list"), run("rank", "list")
    assert "vsm: " in families.stdout
    assert "column family 'gone' (gone:Gone) cannot be loaded" in families.stderr
    assert "lambdamart: " in rankers.stdout
    assert "ranker 'gone' (gone:Gone) cannot be loaded" in rankers.stderr
    assert "cannot be loaded" in refused("columns", "list", "gone")
    assert is_registered(VectorSpace)


def test_rankers_are_listed_together_or_one_by_one():
    text = done("rank", "list")
    assert "num_leaves = " in text
    one = done("rank", "list", "listnet")
    assert one.startswith("Top-one ListNet: ")
    assert "n_epochs = " in one
    assert "num_leaves" not in one
    assert "did you mean 'listnet'" in refused("rank", "list", "listnt")


def test_settings_are_toml_or_text():
    given = ["rank=50", "splits=['a', 'b']", "folder=data/x", "c.id=sku", "c.title=true"]
    assert settings(given, "option") == {
        "rank": 50, "splits": ["a", "b"], "folder": "data/x", "c": {"id": "sku", "title": True},
    }  # fmt: skip
    for written in ("{Exact = 2}", '{"Exact": 2}'):
        assert settings([f"grades={written}"], "option") == {"grades": {"Exact": 2}}
    assert settings(["a={b"], "option") == {"a": "{b"}
    assert settings(["share=.25", "low=-.5", "file=.25.csv"], "option") == {
        "share": 0.25, "low": -0.5, "file": ".25.csv",
    }  # fmt: skip
    with pytest.raises(InputError, match="option 'a' is given twice"):
        settings(["a=1", "a=2"], "option")
    with pytest.raises(InputError, match=r"option 'a.b.c' is given twice"):
        settings(["a=1", "a.b.c=2"], "option")


def test_text_has_zeros_where_a_ranker_learned_from_missing_values(tmp_path):
    """Its scores of the same rows differ, which is told."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "qid": np.repeat(np.arange(40), 10),
            "docno": np.arange(400),
            "label": 0,
            "a": 1.0,
            "b": 1.0,
        }
    )
    rows["label"], rows["a"] = rng.integers(0, 3, 400), rng.random(400)
    rows["a"] = rows["a"].where(rows["label"] > 0)
    rows.to_csv(tmp_path / "a.csv", index=False)
    parquet, text, ranker = (tmp_path / name for name in ("a.parquet", "a.txt", "ranker"))
    done("convert", tmp_path / "a.csv", parquet)
    done("convert", tmp_path / "a.csv", text)
    done("rank", "train", parquet, "--param", "n_estimators=5", "--out", ranker)
    exact, other = (run("rank", "score", ranker, path) for path in (parquet, text))
    assert exact.stdout != other.stdout
    assert exact.stderr == ""
    assert "a.txt: 1 column (a) had missing values in the training rows; LETOR text" in other.stderr
    stopping = run("rank", "train", parquet, "--vali", text, "--out", ranker).stderr
    assert "a.txt: 1 column (a) had missing values in the training rows; LETOR text" in stopping
    done("rank", "train", text, "--param", "n_estimators=5", "--out", ranker)
    assert run("rank", "score", ranker, text).stderr == ""


def test_last_columns_that_no_row_has_are_zero(workspace, tmp_path):
    """The sister file of a LETOR file has a value in the last column of each row."""
    full, short, ranker = (tmp_path / name for name in ("full.txt", "short.txt", "ranker"))
    rows = [f"{(i + j) % 2} qid:q{i} 1:{j} 2:{i * j}" for i in range(8) for j in range(6)]
    full.write_text("".join(f"{row} 3:0\n" for row in rows))
    short.write_text("".join(f"{row}\n" for row in rows))
    train = ("rank", "train", full, "--param", "n_estimators=3", "--out", ranker, "--vali")
    remark = f"{short}: no row has a value in column 3 of the training rows; they count as 0"
    assert remark in run(*train, short).stderr
    assert "no row has a value" not in run(*train, full).stderr
    found = run("rank", "score", ranker, short)
    assert remark in found.stderr
    assert found.stdout == done("rank", "score", ranker, full)
    assert "train with their number: rank train --columns N" in refused(
        "rank", "train", short, "--out", ranker, "--vali", full
    )
    done("rank", "train", short, "--columns", 3, "--out", ranker, "--vali", full)
    full.with_name("short.columns.json").write_text('[{"name": "a"}, {"name": "b"}]')
    assert "short.txt lack columns" not in (said := refused("rank", "score", ranker, short))
    assert "lack columns of the training rows: 1, 2, 3; make them as for the training" in said
    assert "3 columns were given as the number of columns, but" in refused(
        "rank", "train", short, "--columns", 3, "--out", ranker
    )


def test_training_that_learns_nothing_is_told(tmp_path):
    train, ranker = tmp_path / "train.txt", tmp_path / "ranker"
    train.write_text("".join(f"{j % 2} qid:q{i} 1:{j}\n" for i in range(3) for j in range(6)))
    found = run("rank", "train", train, "--out", ranker)
    assert found.stderr.count("learned nothing") == 1
    assert "lambdamart: learned nothing, it uses no column" in found.stderr
    assert "LetorWarning" not in found.stderr
    found = run("rank", "train", train, "--param", "min_data_in_leaf=1", "--out", ranker)
    assert "learned nothing" not in found.stderr


def test_columns_are_appended_after_columns_that_no_row_has(workspace, tmp_path):
    file, table = tmp_path / "a.txt", tmp_path / "a.parquet"
    file.write_text("1 qid:q0 1:1 #docid = d0\n0 qid:q0 1:2 #docid = d1\n")
    append = ("--workspace", workspace, "--family", "vsm", "--columns", 3, "--out")
    for out in (tmp_path / "b.txt", tmp_path / "b.parquet"):
        assert "4: vsm" in done("columns", "append", file, *append, out)
        assert read_rows(out).column_names == ["1", "2", "3", "vsm"]
    done("convert", file, table)
    for source in (table, tmp_path / "b.txt"):
        assert "leave the number out" in refused(
            "columns", "append", source, *append, tmp_path / "c.txt"
        )


def test_commands_read_values_that_are_not_finite_as_missing(workspace, tmp_path):
    file, out = tmp_path / "a.txt", tmp_path / "out"
    lines = [f"{j % 2} qid:q{i} 1:{j} 2:nan #docid = d{j}" for i in range(8) for j in range(6)]
    file.write_text("\n".join(lines))
    done("rank", "train", file, "--non-finite", "nan", "--out", out)
    append = ("columns", "append", file, "--workspace", workspace, "--family", "vsm", "--out")
    for command in (
        ("rank", "train", file, "--out", out),
        ("rank", "score", out, file),
        ("convert", file, tmp_path / "b.parquet"),
        (*append, tmp_path / "b.txt"),
        (*append, tmp_path / "b.parquet"),
    ):
        said = refused(*command)
        assert "a.txt, line 1: '2:nan' is not a number; read with non_finite=\"nan\"" in said
        assert "(--non-finite nan)" in said
        done(*command, "--non-finite", "nan")
    assert b"1:0 2:nan 3:" in (tmp_path / "b.txt").read_bytes()
    assert np.isnan(read_rows(tmp_path / "b.parquet").column("2")).all()
    said = refused("rank", "score", out, tmp_path / "b.parquet", "--non-finite", "nan")
    assert "b.parquet: non_finite (--non-finite) is for LETOR text" in said


def test_appended_columns_have_names_beside_the_new_file(workspace, tmp_path):
    first, second, plain = (tmp_path / f"{name}.txt" for name in ("first", "second", "plain"))
    done("columns", "build", "--workspace", workspace, "--family", "letor46", "--out", first)
    append = ("--workspace", workspace, "--family", "vsm", "--out", second)
    assert "47: vsm" in done("columns", "append", first, *append)
    rows, both = read_rows(second), tmp_path / "both.parquet"
    done("columns", "build", "--workspace", workspace, "--family", "letor46", "--family", "vsm",
         "--out", both)  # fmt: skip
    np.testing.assert_array_equal(rows.X, read_rows(both).X)
    assert rows.column_names == read_rows(both).column_names
    assert rows.column_names == [*read_rows(first).column_names, "vsm"]
    assert rows.provenance["vsm"]["family"] == "vsm"
    assert "has a column vsm already" in refused(
        "columns", "append", second, *append[:-1], tmp_path / "third.txt"
    )
    assert read_rows(second).column_names == rows.column_names  # neither file was touched
    bare = tmp_path / "bare.txt"  # whose rows cannot be joined, which takes longer to find
    bare.write_text(re.sub("#.*", "", second.read_text(encoding="utf-8")), encoding="utf-8")
    names_path(bare).write_bytes(names_path(second).read_bytes())
    assert "bare.txt has a column vsm already" in refused(
        "columns", "append", bare, *append[:-1], tmp_path / "third.txt"
    )
    plain.write_bytes(first.read_bytes())  # no names beside it
    done("columns", "append", plain, *append)
    assert read_rows(second).column_names == [*map(str, range(1, 47)), "vsm"]
    by_text, table = read_rows(second), tmp_path / "a.parquet"
    write_rows(read_rows(first), table)
    done("columns", "append", table, *append)
    by_table = read_rows(second)
    assert by_table.column_names == rows.column_names
    assert by_table.provenance == rows.provenance
    np.testing.assert_array_equal(by_table.X, by_text.X)
    assert "already" in refused("columns", "append", second, *append[:-1], table)
    assert "two columns are called vsm" in refused(
        "columns", "append", plain, "--family", "vsm", *append
    )
    names = tmp_path / "second.columns.json"
    names.write_text("[1")
    assert "second.columns.json: not a list of columns" in refused("rank", "train", second, "--out",
                                                                   tmp_path / "r")  # fmt: skip
    names.write_text('[{"name": "a"}]')
    assert "names 1 column, the rows have 47: it belongs to another file" in refused(
        "rank", "train", second, "--out", tmp_path / "r"
    )


def test_folds_are_written_without_models_too(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out")
    assert "in 4 folds" in done(*build, tmp_path / "folds", "--folds", 4)
    parts = [read_rows(tmp_path / "folds" / "Fold4" / f"{p}.txt").query_ids
             for p in ("train", "vali", "test")]  # fmt: skip
    assert len(set().union(*parts)) == sum(map(len, parts)) == 40
    (tmp_path / "file").write_text("mine")
    assert "file is a file; folds are written" in refused(*build, tmp_path / "file", "--folds", 4)
    assert "folds is a folder; name a file, or give --folds" in refused(*build, tmp_path / "folds")
    assert "has no groups of queries" in refused(*build, tmp_path / "g", "--folds", 4, "--by-group")
    assert not (tmp_path / "g").exists()


def test_parts_that_are_given_are_kept(workspace, tmp_path):
    """In every command that makes folds, for the rows of models as for those of the test."""
    ids = open_workspace(workspace).collection.query_ids
    part = ["test" if n % 4 == 0 else "Train" for n in range(len(ids))]
    marked = tmp_path / "judged.csv"  # a row for each judgement; its id is none of a query
    rows = pd.DataFrame({"id": range(2 * len(ids)), "query_id": ids * 2, "split": part * 2})
    rows.to_csv(marked, index=False)
    folds = tmp_path / "folds"
    fast = ("--param", "ssi.max_epochs=1", "--param", "ssi.rank=4")
    build = ("columns", "build", "--workspace", workspace, "--model", "ssi", *fast, "--out", folds)
    assert "in 1 fold" in done(*build, "--split", marked)
    found = {p: set(read_rows(folds / "Fold1" / f"{p}.txt").query_ids)
             for p in ("train", "vali", "test")}  # fmt: skip
    assert found["test"] == {query for query, p in zip(ids, part, strict=True) if p == "test"}
    assert found["train"] | found["vali"] == set(ids) - found["test"]
    assert len(found["vali"]) == 6
    n_models = len(list((folds / "models").iterdir()))
    train = folds / "Fold1" / "train.txt"
    done("rank", "train", train, "--ranker", "coordinate-ascent", "--out", tmp_path / "ranker")
    marked.unlink()
    done("pipeline", "build", folds, "--ranker", tmp_path / "ranker", "--out", tmp_path / "service")
    assert len(list((folds / "models").iterdir())) == n_models  # none was trained again
    rows.assign(split="dev").to_csv(marked, index=False)
    assert "queries for training, and others for the test" in refused(*build, "--split", marked)
    rows.assign(split="x").to_csv(marked, index=False)
    assert "judged.csv, line 2: 'x' is no part; use train, " in refused(*build, "--split", marked)
    rows[1:40].to_csv(marked, index=False)
    assert "judged.csv: no part of 1 query, e.g. " in refused(*build, "--split", marked)
    assert "leave out --folds" in refused(*build, "--split", marked, "--folds", 5)


def test_files_of_judgements_may_be_the_parts(workspace, tmp_path):
    """As in BEIR's folders."""
    ids = open_workspace(workspace).collection.query_ids
    qrels, folds = tmp_path / "qrels", tmp_path / "folds"
    qrels.mkdir()
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", folds)
    assert "qrels: no judgements (*.tsv)" in refused(*build, "--split", qrels)

    def judge(name, queries):
        lines = "".join(f"{query}\tany\t1\n" for query in queries)
        (qrels / f"{name}.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)

    parts = {"train": ids[8:], "dev": ids[4:8], "test": ids[:4] * 2}
    for name, queries in parts.items():
        judge(name, queries)
    done(*build, "--split", qrels)
    for name, queries in parts.items():
        part = folds / "Fold1" / f"{name.replace('dev', 'vali')}.txt"
        assert set(read_rows(part).query_ids) == set(queries)
    judge("dev", ids[3:8])
    told = f"test.tsv, line 5: query {ids[3]!r} is for test, before for validation"
    assert told in refused(*build, "--split", qrels)
    (qrels / "dev.tsv").rename(qrels / "more.tsv")
    assert "more.tsv, line 2: 'more' is no part" in refused(*build, "--split", qrels)


def test_parts_that_rankers_cannot_use_are_told(tmp_path):
    """A query whose word no document has gets no row: of two with rows, one part at most trains,
    and another validates."""
    texts = [text if q < 2 else f"unheard{q}" for q, text in enumerate(topics().query_texts)]
    make_workspace(replace(topics(), query_texts=texts), tmp_path / "workspace")
    build = ("columns", "build", "--workspace", tmp_path / "workspace", "--family", "vsm")
    told = run(*build, "--folds", 12, "--out", tmp_path / "folds").stderr
    useless = [f"Fold{n}" for n in range(1, 13)
               if not (tmp_path / "folds" / f"Fold{n}" / "vali.txt").stat().st_size]  # fmt: skip
    assert len(useless) >= 10
    names = f"{', '.join(useless[:-1])} and {useless[-1]}"
    assert f"{names}: no validation query has rows of two different labels" in told
    assert "of all 24 queries 2 have: judge more queries, or find more candidates" in told
    assert "no training query" not in told
    said = refused(*build, "--folds", 30, "--out", tmp_path / "folds")
    assert said.startswith("--folds 30: 24 queries cannot be dealt into 30 parts")


def test_queries_of_one_text_in_two_given_parts_are_told(tmp_path):
    twins = replace(topics(), query_texts=[f"topic{q // 4}word{q // 2 % 2}" for q in range(24)])
    make_workspace(twins, tmp_path / "workspace")
    parts = tmp_path / "parts.tsv"
    parts.write_text("".join(f"{q}\t{'test' if n < 5 else 'train'}\n"
                             for n, q in enumerate(twins.query_ids)))  # fmt: skip
    build = ("columns", "build", "--workspace", tmp_path / "workspace", "--family", "vsm",
             "--split", parts, "--out", tmp_path / "folds")  # fmt: skip
    for columns in ((), ("--model", "lsa")):
        told = run(*build, *columns).stderr
        assert told.count("1 test query has the same text as a training query") == 1


def test_rankers_learn_from_some_columns_and_score_rows_with_all(tmp_path):
    rng = np.random.default_rng(0)
    file, out = tmp_path / "a.txt", tmp_path / "r"
    rows = (f"{rng.integers(3)} qid:{q} 1:{rng.random()} 2:{rng.random()} 3:{rng.random()}\n"
            for q in range(9) for _ in range(9))  # fmt: skip
    file.write_text("".join(rows))
    train = ("rank", "train", file, "--vali", file, "--ranker", "coordinate-ascent", "--out", out)
    for options, used in (
        (("--only", 1, "--only", 3), ["1", "3"]),
        (("--without", 1), ["2", "3"]),
    ):
        done(*train, *options)
        assert load_ranker(out).feature_names_ == used
        assert len(done("rank", "score", out, file).split()) == 81
    assert "no column '7'" in refused(*train, "--without", 7)
    assert "no column is left" in refused(*train, "--without", 1, "--only", 1)


def test_rankers_are_checked_before_they_are_trained(tmp_path):
    absent, mine = tmp_path / "absent.txt", tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("precious")
    assert "'lambdamart': n_estimators must be a whole number, got 'abc'" in refused(
        "rank", "train", absent, "--out", tmp_path / "r", "--param", "n_estimators=abc"
    )
    said = refused("rank", "train", absent, "--out", mine)
    assert "mine is not empty and holds no ranker" in said


def test_parquet_is_measured_and_validated_as_text_is(tmp_path):
    text, table = tmp_path / "a.txt", tmp_path / "a.parquet"
    text.write_text("1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:3\n")
    done("convert", text, table)
    assert done("measure", table, "--column", 1) == done("measure", text, "--column", 1)
    missing = tmp_path / "b.csv"
    missing.write_text("qid,label,bm25\n1,1,\n1,0,2\n")
    done("convert", missing, tmp_path / "b.parquet")
    said = refused("measure", tmp_path / "b.parquet", "--column", "bm25")
    assert "column bm25 has no value in 1 row" in said
    missing.write_text("qid,bm25\n1,1\n1,2\n")
    done("convert", missing, tmp_path / "b.parquet")
    told = CliRunner().invoke(app, ["measure", str(tmp_path / "b.parquet"), "--column", "bm25"])
    assert "b.parquet: no row has a label above 0" in told.output
    (_, *said), (_, *same) = (done("validate", path).splitlines() for path in (text, table))
    assert same == said


def test_more_columns_are_read_where_they_are_asked_for(tmp_path):
    wide, ranker, table = (tmp_path / name for name in ("wide.txt", "ranker", "a.parquet"))
    wide.write_text("".join(f"{j % 2} qid:{i} 1:{j} 10001:1\n" for i in range(3) for j in range(9)))
    for command in (
        ("validate", wide),
        ("convert", wide, table),
        ("measure", wide, "--column", 1),
        ("rank", "train", wide, "--ranker", "adarank", "--out", ranker),
        ("rank", "score", ranker, wide),
    ):
        assert "'10001:1': the id is above max_columns=10000" in refused(*command)
        done(*command, "--max-columns", 10_001)
    features = tmp_path / "features.csv"
    features.write_text("qid,label,bm25\n1,1,2\n1,0,3\n")
    for command in (
        ("validate", table),
        ("convert", features, tmp_path / "b.parquet"),
        ("measure", table, "--column", 1),
        ("rank", "train", table, "--scheduler", "local:1", "--out", tmp_path / "other"),
        ("rank", "score", ranker, table),
    ):
        assert "for LETOR text" in refused(*command, "--max-columns", 5)


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.csv.gz", "a.json", "a.txt.xz", "a.parquet.gz", "a.CSV", "a.Parquet", "a.txt.GZ"],
)
def test_letor_text_is_not_written_under_the_name_of_another_format(workspace, tmp_path, name):
    text = tmp_path / "a.txt"
    text.write_text("1 qid:1 1:1\n")
    build = ("--workspace", workspace, "--family", "vsm", "--out", tmp_path / name)
    for command in (
        ("convert", text, tmp_path / name),
        ("columns", "build", *build),
        ("columns", "append", text, *build),
    ):
        told = (
            "rows are written as .parquet" if name.islower() else "write the suffix in lower case"
        )
        assert told in refused(*command)
    assert not (tmp_path / name).exists()


def test_folds_beside_others_are_refused_before_the_work(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", tmp_path)
    done(*build, "--folds", 5)
    said = refused(*build, "--folds", 4)
    assert "has Fold5 of other folds, which would be taken for a part of these 4" in said
    done(*build, "--folds", 5)


def test_ids_that_letor_text_cannot_hold_are_refused_before_the_work(beir, tmp_path):
    for file in ("corpus.jsonl", "queries.jsonl"):
        lines = (beir / file).read_text()
        (tmp_path / file).write_text(lines.replace('"d7"', '"d 7"'))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td 7\t1\n")
    done("index", "beir", f"folder={tmp_path}", "--out", tmp_path / "w")
    build = ("columns", "build", "--workspace", tmp_path / "w", "--family", "vsm", "--out")
    assert "document id 'd 7': LETOR text and TREC files need" in refused(
        *build, tmp_path / "a.txt"
    )
    done(*build, tmp_path / "a.parquet")  # which can hold any id
    assert "d 7" in set(read_rows(tmp_path / "a.parquet").document_ids)


def test_files_of_training_queries_are_checked_line_by_line(workspace, tmp_path):
    queries, fit = tmp_path / "queries.txt", ("models", "fit", "tfidf", "--workspace", workspace)
    fit = (*fit, "--out", tmp_path / "m.safetensors", "--queries", queries)
    queries.write_text("q1\n\nq999\n")
    assert "queries.txt, line 3: the workspace has no query 'q999'" in refused(*fit)
    queries.write_text("\n")
    assert "queries.txt: no query id" in refused(*fit)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(command):
    text = " ".join(done(*command, "--help").split())
    assert f"Example: ltr-features {' '.join(command)}" in text


@pytest.mark.parametrize("on_terminal", [False, True])
def test_the_logs_of_short_commands_show_no_progress(workspace, tmp_path, monkeypatch, on_terminal):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=on_terminal, width=150)
    monkeypatch.setattr(ltr_features.studies.progress, "Console", lambda **options: console)
    models = []
    epoch = lambda _, model, event: models.append(model)  # noqa: E731
    monkeypatch.setattr(ltr_features.studies.progress.Reporter, "epoch", epoch)
    training = (
        *("--param", "ssi.rank=2", "--param", "ssi.max_epochs=2"),
        *("--param", "ssi.n_negatives=8", "--param", "ssi.batch_size=16"),
    )
    folds, model, ranker = tmp_path / "folds", tmp_path / "ssi.safetensors", tmp_path / "r"
    said = done(
        "columns", "build", "--workspace", workspace, "--family", "vsm", "--model", "ssi",
        *training, "--folds", 4, "--depth", 10, "--out", folds,
    )  # fmt: skip
    assert [line.split(":")[0] for line in said.splitlines()[:4]] == [
        f"Fold{i}" for i in (1, 2, 3, 4)
    ]
    assert "4 folds" in said.splitlines()[4]
    said = done(
        "models", "fit", "ssi", "--workspace", workspace, "--out", model,
        *(part.removeprefix("ssi.") for part in training),
    )  # fmt: skip
    assert len(said.splitlines()) == 1
    said = done(
        "rank", "train", folds / "Fold1" / "train.txt", "--ranker", "lambdamart", "--out", ranker
    )
    assert "Fold" not in said
    # The models of each of four folds are trained together; then one of all queries.
    assert len(set(models)) == 4 + 1
    if not on_terminal:
        assert {line.split(" to fit")[0] for line in shown.getvalue().splitlines()} == {
            "ssi: 12 models", "ssi: 1 model",
        }  # fmt: skip
        return
    lines = [line.split() for line in shown.getvalue().splitlines()]
    stages = ["columns", "Fold1", "Fold2", "Fold3", "Fold4", "ssi", "rows", "lambdamart"]
    finished = [words[1] for words in lines if len(words) == 4 and words[3] == "s"]
    assert finished == stages


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


@pytest.fixture(scope="module")
def gaps(beir, tmp_path_factory):
    """A workspace where one query has no candidate, one is not judged, and pools of 5 documents
    miss relevant ones of two grades."""
    folder = tmp_path_factory.mktemp("gaps")
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text((beir / "corpus.jsonl").read_text())
    queries = (beir / "queries.jsonl").read_text()
    queries += '{"_id": "lost", "text": "nowhere"}\n{"_id": "free", "text": "common1"}\n'
    (folder / "queries.jsonl").write_text(queries)
    lines = (beir / "qrels" / "test.tsv").read_text().splitlines()
    lines = [line[:-1] + str(1 + i % 2) if i else line for i, line in enumerate(lines)]
    (folder / "qrels" / "test.tsv").write_text("\n".join([*lines, "lost\td0\t1\n"]))
    out = tmp_path_factory.mktemp("out") / "workspace"
    done("index", "beir", f"folder={folder}", "keep_unjudged=true", "--out", out)
    return out


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.zst", "rows.parquet"])
def test_measures_of_built_columns_are_those_of_a_report_of_the_same_ranking(gaps, tmp_path, name):
    """By every judgement of the collection, through ranx."""
    path = tmp_path / name
    built = run("columns", "build", "--workspace", gaps, "--family", "letor46", "--depth", 5,
                "--out", path)  # fmt: skip
    said = "1 query without candidates; without a row: "
    assert said in built.stderr
    rows = read_rows(path)
    column = rows.column_names.index("bm25_whole")
    collection = open_workspace(gaps).collection
    judged = collection.judgements
    qrels = pd.DataFrame(
        {
            "qid": np.array(collection.query_ids)[judged.query],
            "docno": np.array(collection.document_ids)[judged.document],
            "label": judged.grade,
        }
    )
    values = rows.X[:, column].astype(float)
    distinct = values - 1e-9 * np.arange(len(values))  # in the order that both agree on
    scores = tmp_path / "scores.txt"
    scores.write_text("".join(f"{v!r}\n" for v in distinct.tolist()))
    reported = evaluate(qrels, run_of(rows, distinct), ["NDCG@10", "MAP", "P@10", "MRR"]).mean()
    text = done("measure", path, "--scores", scores)
    found = side_by_side(rows, distinct)
    for measure, value in reported.items():
        kind = "MAP" if measure == "MAP" else measure
        row = found[(found["measure"] == kind) & ~found["known_as"].str.contains("LETOR|MSLR")]
        row = row[row["known_as"] != "empty queries dropped"].iloc[0]
        assert row["value"] == pytest.approx(value, abs=1e-12), measure
        assert row["queries"] == 41  # of the 42 that there are, one is not judged
        assert f"{value:.4f}" in text
    overstated = side_by_side(replace(rows, missing=None), distinct)
    assert (overstated["value"] > found["value"] + 0.001).any()
    lost = rows.missing.n_relevant
    assert (
        f"without a row: {lost:,} of 401 relevant documents, 1 query; measures count them" in text
    )
    assert "leave out queries without judgement: 1" in text


def test_labels_too_large_for_a_gain_are_no_obstacle_to_other_measures(tmp_path):
    """Views or sales as labels."""
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{n} qid:1 1:{n}\n" for n in (0, 40, 5000)))
    told = run("measure", path, "--column", 1)
    assert "P@10" in told.stdout
    assert "RankLib" not in told.stdout
    why = "label 5000 is too large for the exponential gain 2^label - 1: bin the labels"
    assert f"not computed: NDCG@10, MeanNDCG: {why}" in told.stderr


def test_files_that_do_not_say_what_they_lack_are_said_so(workspace, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{i % 2} qid:{i // 4} 1:{i}\n" for i in range(40)))
    unknown = "not known: whether relevant documents or queries lack a row"
    assert unknown in done("measure", path, "--column", 1)
    trained = run("rank", "train", path, "--ranker", "coordinate-ascent", "--out", tmp_path / "r")
    assert f"ndcg@10: {unknown}" in trained.stderr
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--depth", 12)
    done(*build, "--folds", 4, "--out", tmp_path / "folds")
    fold = tmp_path / "folds" / "Fold1"
    trained = run("rank", "train", fold / "train.txt", "--vali", fold / "vali.txt", "--param",
                  "n_estimators=2", "--out", tmp_path / "s")  # fmt: skip
    assert f"ndcg@10: {read_rows(fold / 'vali.txt').coverage}" in trained.stderr
    judged = run("convert", fold / "test.txt", tmp_path / "test.qrels")
    assert "judgements of the rows only; without a row: " in judged.stderr


def test_appended_and_converted_files_know_what_they_lack(gaps, tmp_path):
    first, second, third = (tmp_path / name for name in ("a.txt", "b.txt", "c.parquet"))
    build = ("columns", "build", "--workspace", gaps, "--family", "letor46", "--depth", 5)
    done(*build, "--out", first)
    done("columns", "append", first, "--workspace", gaps, "--family", "vsm", "--out", second)
    done("convert", second, third)
    missing = read_rows(first).missing
    assert set(missing.relevant) >= {"lost"}
    assert missing.unjudged == {"free"}
    assert read_rows(second).missing == read_rows(third).missing == missing


def test_options_that_would_be_ignored_are_refused(workspace, tmp_path):
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm")
    text, folds = tmp_path / "rows.txt", tmp_path / "folds"
    for given in (("--out", text), ("--folds", 4, "--out", folds)):
        assert "--memory: only a .parquet without folds" in refused(
            *build, "--memory", "1GiB", *given
        )
        assert "--scheduler: only a .parquet without folds, and models" in refused(
            *build, "--scheduler", "local:1", *given
        )
        assert "--parts: only workers make parts" in refused(*build, "--parts", "s3://b", *given)
    text.write_text("".join(f"{i % 2} qid:{i // 4} 1:{i}\n" for i in range(40)))
    train = ("rank", "train", text, "--memory", "1GiB", "--out", tmp_path / "ranker")
    assert "--memory: " in refused(*train)
    measure = ("measure", text, "--column", 1, "--official", "letor4")
    assert "--cutoff: the script of letor4 has its own" in refused(*measure, "--cutoff", 3)
    qrels = tmp_path / "a.qrels"
    qrels.write_text("1 0 d1 1\n")
    (tmp_path / "a.run").write_text("1 Q0 d1 1 2.5 mine\n")
    of_judgements = ("measure", qrels, "--scores", tmp_path / "a.run")
    for option in (("--on-error", "skip"), ("--non-finite", "nan"), ("--max-columns", 5)):
        assert "LETOR" in refused(*of_judgements, *option)
    assert "NDCG@10" in done(*of_judgements)
    simulate = ("clicks", "simulate", text, "--column", 1, "--out", tmp_path / "log.tsv")
    assert "--eta is for --users pbm" in refused(*simulate, "--users", "dbn", "--eta", 2)
    assert "--continuation is for --users dcm or dbn" in refused(*simulate, "--continuation", 0.5)
    judge = ("clicks", "judge", text, "--out", tmp_path / "judged", "--on-unknown", "skip")
    assert "--on-unknown is for --layout ubi" in refused(*judge)
    assert not (tmp_path / "ranker").exists()
    assert not folds.exists()


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


def test_training_tells_its_best_round_and_queries_that_are_not_held_out(tmp_path):
    train, vali, out = tmp_path / "train.txt", tmp_path / "vali.txt", ("--out", tmp_path / "ranker")
    rows = [f"{j % 2} qid:{i} 1:{j % 3} 2:{i * j}\n" for i in range(6) for j in range(6)]
    train.write_text("".join(rows))
    vali.write_text("".join(rows[30:34]) + "0 qid:5 1:9 2:9\n1 qid:9 1:1 2:1\n0 qid:9 1:1 2:0\n")
    found = run("rank", "train", train, "--vali", vali, "--ranker", "adarank", *out)
    curve = load_ranker(tmp_path / "ranker").validation_curve_
    best = int(np.argmax(curve))
    assert found.stdout.startswith(
        f"best on the validation rows: ndcg@10 {curve[best]:.4f}, in round {best + 1} of "
        f"{len(curve)}\n"
    )
    assert (
        f"{vali}: 1 of 2 queries are in {train}, too (the first is '5'), with 4 of their 5 rows "
        in found.stderr
    )
    alone = run("rank", "train", train, "--ranker", "adarank", *out)
    assert "best on" not in alone.stdout
    assert "too (the first" not in alone.stderr


def test_rows_without_their_names_are_told_where_to_get_them(tmp_path):
    train, test, ranker = (tmp_path / name for name in ("train.txt", "test.txt", "ranker"))
    train.write_text("".join(f"{j % 2} qid:{i} 1:{j}\n" for i in range(6) for j in range(6)))
    test.write_text(train.read_text())
    (tmp_path / "train.columns.json").write_text('[{"name": "bm25"}]')
    done("rank", "train", train, "--ranker", "adarank", "--out", ranker)
    assert "copy the NAME.columns.json of the training rows" in refused(
        "rank", "score", ranker, test
    )
