"""What holds for several commands, or for all."""

from __future__ import annotations

import gzip
import io
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from rich.console import Console
from toys import done, refused, run
from typer.main import get_command

import ltr_features.studies.progress
from letor import plugins
from letor.column_names import read_rows
from letor.trec import read_run
from ltr_features.cli import app
from ltr_features.columns.registry import is_registered
from ltr_features.columns.term_space import VectorSpace


def commands(group=None, path=()):
    """The names of all commands, those of groups with the group's."""
    group = get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


COMMANDS = list(commands())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(command):
    text = " ".join(done(*command, "--help").split())
    assert f"Example: ltr-features {' '.join(command)}" in text


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
    fitted, kept = said.splitlines()
    assert fitted.startswith("ssi, 40 training queries: ")
    assert kept.startswith("MAP on held-out training queries: ")
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
    seed = refused(*build, "--seed", 1, "--out", text)
    assert "--seed is for folds and models, and there are none" in seed
    text.write_text("".join(f"{i % 2} qid:{i // 4} 1:{i}\n" for i in range(40)))
    append = ("columns", "append", text, "--workspace", workspace, "--family", "vsm")
    seed = refused(*append, "--seed", 1, "--out", tmp_path / "more.txt")
    assert "--seed is for --model, and none is given" in seed
    train = ("rank", "train", text, "--memory", "1GiB", "--out", tmp_path / "ranker")
    assert "--memory: " in refused(*train)
    assert "max_columns (--max-columns) is for LETOR text" in refused(
        "validate", workspace / "index", "--max-columns", 5
    )
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
