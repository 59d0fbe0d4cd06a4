"""Every file that an experiment reads is known by its content: whatever its path is spelled like,
a change in it makes exactly the stages again that depend on it."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import EntryPoint
from typing import Any

import pandas as pd
import pytest
from small_experiment import (
    N_QUERIES,
    config_of,
    judged,
    keys,
    spoil,
    stale,
    write_beir,
    write_dump,
    write_saved,
    write_table,
    write_trec,
)

from letor import plugins
from ltr_features.studies.kinds.ranking import RankingStudy
from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.stages import code_digest

FOLDS = ("letor/by-query", "systems/by-query/VSM", "systems/by-query/SSI")
ALL = {"collection", "index", "models/by-query/ssi", "letor/base", *FOLDS}
#: Stages that have further columns of :func:`config_of`.
AFTER_COLUMNS = {"letor/base", "letor/by-query", "systems/by-query/All"}


@pytest.mark.parametrize("write", [write_beir, write_trec, write_table, write_dump, write_saved])
def test_every_file_of_a_source_counts_for_all_stages(here, write: Callable[..., Any]):
    collection, files = write(here)
    config = config_of(collection)
    known = keys(config)
    assert set(known) == ALL
    for file in files:
        spoil(here / file)
        changed = {name for name, key in keys(config).items() if key != known[name]}
        assert changed == ALL, file
        spoil(here / file)
        assert keys(config) == known


@pytest.mark.parametrize(
    ("family", "option", "file"),
    [
        ("w2v-word", "vectors", "vectors.txt"),
        ("d2v-word", "model", "kept.safetensors"),
        ("w2v-entity", "dump", "dump.xml"),
        ("w2v-entity", "knowledge", "kb/titles"),
        ("entity-overlap", "annotations", "annotations.jsonl"),
    ],
)
def test_every_file_of_a_column_counts_for_the_columns(here, family, option, file):
    collection, _ = write_beir(here)
    path = here / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"some content")
    # The folder of the collection is ".", so that it has the file too: name another one.
    (here / "set").mkdir()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels", "links.tsv"):
        (here / name).rename(here / "set" / name)
    config = config_of(
        collection | {"folder": "set"},
        ({"family": family, "options": {option: file.split("/")[0]}},),
    )
    known = keys(config)
    spoil(path)
    assert {name for name, key in keys(config).items() if key != known[name]} == AFTER_COLUMNS


def test_the_order_of_the_files_of_columns_counts_for_the_columns(here):
    collection, _ = write_beir(here)
    files = {"a": "a.run", "b": "b.run"}
    for name in files.values():
        (here / name).write_text("q0 Q0 d0 1 1.0 x\n")

    def known(given: dict[str, str]) -> dict[str, str]:
        return keys(config_of(collection, ({"family": "scores", "options": {"files": given}},)))

    before, after = known(files), known(dict(reversed(files.items())))
    assert {name for name in before if before[name] != after[name]} == AFTER_COLUMNS


def test_what_is_read_beside_a_file_counts_too(here):
    (here / "set").mkdir()
    collection, _ = write_beir(here / "set")
    (here / "some.npy").write_bytes(b"some content")
    for family, options, beside in (
        ("vectors", {"documents": "some.npy"}, "some.txt"),
        ("scores", {"files": {"x": "some.npy"}}, "some.npy.columns.json"),
    ):
        (here / beside).write_bytes(b"some content")
        columns = ({"family": family, "options": options},)
        known = keys(config := config_of(collection | {"folder": "set"}, columns))
        spoil(here / beside)
        assert {name for name, key in keys(config).items() if key != known[name]} == AFTER_COLUMNS


def test_a_file_of_the_working_directory_counts_by_its_content_too(here):
    (here / "set").mkdir()
    collection, _ = write_beir(here / "set")
    (here / "vectors.txt").write_text("topic0 1 0\n")
    config = config_of(collection, ({"family": "w2v-word", "options": {"vectors": "vectors.txt"}},))
    known = keys(config, "set")
    spoil(here / "vectors.txt")
    changed = {name for name, key in keys(config, "set").items() if key != known[name]}
    assert changed == AFTER_COLUMNS


FAMILY = """
from ltr_features.columns.term_space import VectorSpace
class Family(VectorSpace):
    name = "their-family"
"""
RANKER = """
from letor.rankers.adarank import AdaRank
class TheirRanker(AdaRank):
    name = "their-ranker"
"""
SOURCE = """
from ltr_features.sources.beir import read_beir
def read(folder):
    return read_beir(folder)
"""


def test_the_code_of_plug_ins_counts_for_the_stages_that_use_it(here, monkeypatch):
    monkeypatch.syspath_prepend(here)
    for name, text in (("family", FAMILY), ("ranker", RANKER), ("source", SOURCE)):
        (here / f"their_{name}.py").write_text(text)
    points = [
        EntryPoint("their-family", "their_family:Family", "ltr_features.columns"),
        EntryPoint("their-ranker", "their_ranker:TheirRanker", "letor.rankers"),
        EntryPoint("theirs", "their_source:read", "ltr_features.sources"),
    ]
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: [p for p in points if p.group == group]
    )
    (here / "set").mkdir()
    write_beir(here / "set")
    ranked = {"name": "Ranked", "columns": ["vsm"], "ranker": "theirs"}
    config = config_of({"source": "theirs", "folder": "set"}).model_dump() | {
        "columns": [{"family": "their-family"}],
        "rankers": [{"name": "theirs", "ranker": "their-ranker"}],
    }
    config = ExperimentConfig.model_validate(config | {"systems": [*config["systems"], ranked]})

    known, every = keys(config), {*ALL, "systems/by-query/Ranked"}
    for name, expected in (
        ("source", every),
        ("family", every - {"collection", "index", "models/by-query/ssi", "systems/by-query/SSI"}),
        ("ranker", {"systems/by-query/Ranked"}),
    ):
        (here / f"their_{name}.py").write_text("# changed")
        code_digest.cache_clear()
        changed = keys(config)
        assert {stage for stage, key in changed.items() if key != known[stage]} == expected, name
        known = changed


def test_a_folder_that_a_package_reads_counts_though_nothing_says_that_it_is_one(here, monkeypatch):
    monkeypatch.syspath_prepend(here)
    (here / "their_reader.py").write_text(SOURCE)
    point = EntryPoint("theirs", "their_reader:read", "ltr_features.sources")
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: [point] if group == point.group else []
    )
    (here / "set").mkdir()
    write_beir(here / "set")
    config = config_of({"source": "theirs", "folder": "set"})
    known = keys(config)
    assert keys(config) == known
    spoil(here / "set" / "corpus.jsonl")
    assert {stage for stage, key in keys(config).items() if key != known[stage]} == ALL


def test_the_installed_excerpt_is_known_by_its_content(here, monkeypatch):
    """Columns name it, and no file."""
    dump = here / "excerpt.xml"
    dump.write_bytes(b"some content")
    monkeypatch.setattr("ltr_features.studies.kinds.sections.excerpt_path", lambda: dump)
    options = {"family": "w2v-entity", "options": {"dump": "wikipedia-excerpt"}}
    (here / "set").mkdir()
    collection, _ = write_saved(here / "set")
    config = config_of(collection | {"folder": "set/saved"}, (options,))
    known = keys(config)
    spoil(dump)
    assert {name for name, key in keys(config).items() if key != known[name]} == AFTER_COLUMNS


def test_the_spelling_of_a_path_does_not_matter(here):
    (here / "sets").mkdir()
    collection, _ = write_trec(here / "sets")
    spelled = {
        "sets": collection,
        str(here / "sets"): collection,
        "sets/../sets": collection,
        ".": collection
        | {
            "documents": ["sets/a.trec", "./sets/b.trec"],
            "topics": "sets//topics",
            "qrels": str(here / "sets" / "qrels"),
        },
    }
    found = [keys(config_of(options), data) for data, options in spelled.items()]
    assert all(one == found[0] for one in found[1:])


def test_a_run_makes_again_what_changed_and_nothing_else(here):
    """The documented call, ``--data .``: other judgements give other values; a model that was
    changed in its folder is trained again, and no other stage runs."""
    collection, _ = write_trec(here)
    config = config_of(collection)
    RankingStudy(config, "out", ".").run()
    assert stale(config) == set()

    values = here / "out" / "systems" / "by-query" / "VSM" / "per_query.csv"
    before = pd.read_csv(values)["NDCG@10"].mean()
    lines = [f"{q} 0 d{(int(d[1:]) + 1) % 24} 1\n" for q, d in judged()]
    (here / "qrels").write_text("".join(lines))
    assert stale(config) == ALL
    again = RankingStudy(config, "out", ".")
    assert "to do: changed: options.qrels" in again.runner.plan_text(again.stages())
    again.run()
    assert pd.read_csv(values)["NDCG@10"].mean() < before - 0.2
    assert stale(config) == set()

    folder = here / "out" / "models" / "by-query" / "ssi"
    model = sorted(folder.glob("*.safetensors"))[0]
    kept, written = model.read_bytes(), {p: p.stat().st_mtime_ns for p in folder.iterdir()}
    spoil(model)
    assert stale(config) == {"models/by-query/ssi"}
    RankingStudy(config, "out", ".").run()
    assert stale(config) == set()
    assert model.read_bytes() == kept
    again = {p for p in folder.glob("*.safetensors") if p.stat().st_mtime_ns != written[p]}
    assert model in again
    assert len(again) < len(list(folder.glob("*.safetensors")))


def test_the_order_of_sources_and_models_counts_where_it_is_that_of_rows_and_columns(here):
    """And nowhere else: options may be given in any order."""
    values = config_of(write_beir(here)[0]).model_dump(mode="json", exclude_none=True)
    values["models"].append({"name": "lsa", "model": "lsa", "params": {"rank": 2}})
    values["rankers"] = [{"name": "trees", "ranker": "lambdamart"}]
    values["systems"] += [
        {"name": "Two", "columns": ["vsm", "lsa", "ssi"], "ranker": "trees"},
        {"name": "One", "columns": ["vsm", "ssi"], "ranker": "trees"},
    ]
    both = {"bm25": {"depth": 5}, "lsi": {"depth": 5, "rank": 2}}

    def known(**changes: Any) -> dict[str, str]:
        return keys(ExperimentConfig.model_validate(values | changes))

    def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
        return {name for name in before if before[name] != after[name]}

    before = known(candidates=both)
    assert changed(before, known(candidates=dict(reversed(both.items())))) == {
        "letor/base", "models/by-query/ssi", "models/by-query/lsa", *FOLDS,
        "systems/by-query/Two", "systems/by-query/One",
    }  # fmt: skip
    other = known(candidates=both, models=values["models"][::-1])
    assert changed(before, other) == {"letor/by-query", "systems/by-query/Two"}
    turned = {name: dict(reversed(options.items())) for name, options in both.items()}
    assert changed(before, known(candidates=turned)) == set()


def test_every_setting_counts_for_the_stages_that_depend_on_it(here):
    (here / "set").mkdir()
    write_beir(here / "set")
    config = config_of({"source": "beir", "folder": "set"})
    values = config.model_dump(mode="json", exclude_none=True)
    trees = {"name": "trees", "ranker": "lambdamart", "params": {"n_estimators": 3}}
    values["rankers"] = [trees]
    values["systems"].append({"name": "Ranked", "columns": ["vsm"], "ranker": "trees"})
    values["splits"][0] |= {"by": "group"}
    values["groups"] = "groups.tsv"
    groups = here / "groups.tsv"
    groups.write_text("".join(f"q{i}\tg{i // 2}\n" for i in range(N_QUERIES)))
    values["candidates"] = {"bm25": {"depth": 5}}
    trained = {"models/by-query/ssi", *FOLDS, "systems/by-query/Ranked"}
    by_model = {"models/by-query/ssi", "letor/by-query", "systems/by-query/SSI"}
    split, model, vsm = values["splits"][0], values["models"][0], values["systems"][0]

    def known(**changes: Any) -> dict[str, str]:
        return keys(ExperimentConfig.model_validate(values | changes))

    def changed(found: dict[str, str]) -> set[str]:
        assert found.keys() == before.keys()
        return {name for name in before if before[name] != found[name]}

    before = known()
    assert set(before) == {"collection", "index", "letor/base", *trained}
    assert changed(known(candidates={"bm25": {"depth": 6}})) == {"letor/base", *trained}
    assert changed(known(seed=1)) == trained
    assert changed(known(splits=[split | {"folds": 5}])) == trained
    assert changed(known(models=[model | {"params": {"rank": 3, "max_epochs": 1}}])) == by_model
    assert changed(known(rankers=[trees | {"params": {"n_estimators": 4}}])) == {
        "systems/by-query/Ranked"
    }
    told = [vsm | {"description": "told otherwise"}, *values["systems"][1:]]
    assert changed(known(systems=told, title="Other")) == set()
    groups.write_text("".join(f"q{i}\tg{i // 3}\n" for i in range(N_QUERIES)))
    assert changed(known()) == trained


def test_a_run_that_was_killed_while_it_mended_models_leaves_none_of_their_parts(here, monkeypatch):
    """Scores and facts of a fold are still there then, but they are not the last files made."""
    collection, _ = write_trec(here)
    config = config_of(collection)
    RankingStudy(config, "out", ".").run()
    folder = here / "out" / "models" / "by-query" / "ssi"
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    for model in folder.glob("*.safetensors"):
        model.unlink()

    def killed(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ltr_features.feature_table.fold_scores", killed)
        with pytest.raises(KeyboardInterrupt):
            RankingStudy(config, "out", ".").run()
    assert len(list(folder.glob("*.safetensors"))) == 12  # with those of parts, unscored
    RankingStudy(config, "out", ".").run()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_outputs_inside_the_input_folder_are_no_input(here):
    """``--data . --out out`` with a source that is the folder itself."""
    collection, _ = write_beir(here)
    config = config_of(collection)
    known = keys(config)
    (here / "out" / "report").mkdir(parents=True)
    (here / "out" / "report" / "x.txt").write_text("made")
    assert keys(config) == known
    (here / "outer").mkdir()
    (here / "outer" / "x.txt").write_text("given")
    assert keys(config) != known


def test_the_manifest_lists_every_file_with_its_digest(here):
    collection, files = write_trec(here)
    (here / "vectors.txt").write_text("topic0 1 0\ntopic1 0 1\n")
    (here / "engine.run").write_text("q0 Q0 d0 1 2.5 engine\n")
    vectors = {"family": "w2v-word", "options": {"vectors": "vectors.txt"}}
    values = config_of(collection, (vectors,)).model_dump(mode="json", exclude_none=True)
    values["candidates"] = {"engine": {"source": "run", "path": "engine.run"}}
    experiment = RankingStudy(ExperimentConfig.model_validate(values), "out", ".")
    found = experiment.input_files()
    files += ["vectors.txt", "engine.run"]
    assert {file["name"]: file["sha256"] for file in found.values()} == {
        name: sha256((here / name).read_bytes()).hexdigest() for name in files
    }
    assert set(found) == {
        "collection.documents.1", "collection.documents.2", "collection.topics",
        "collection.qrels", "w2v-word.vectors", "candidates.engine.path",
    }  # fmt: skip
