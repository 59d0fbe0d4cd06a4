"""Experiment files find their runner; what cannot be one is refused by name."""

from __future__ import annotations

import pytest

from letor.errors import InputError
from ltr_features.studies import run
from ltr_features.studies.config import read_config
from ltr_features.studies.run import (
    experiment_names,
    find_experiment,
    kind_of,
    run_file,
    study_class,
)


def test_the_kind_chooses_the_class(tmp_path, monkeypatch):
    asked = []

    class Kind:
        @staticmethod
        def read(path, data):
            return path, data

        def __init__(self, config, out, data, *, threads, memory, reporter):
            self.out = out
            asked.append((*config, data, out, threads))

        def run(self, *, dry_run):
            return self.out / "report"

    monkeypatch.setattr(run, "study_class", lambda kind: Kind if kind == "letor" else None)
    monkeypatch.setenv("LTR_DATA", str(tmp_path / "sets"))
    file = tmp_path / "study.toml"
    file.write_text('kind = "letor"\n')
    assert run_file(file, out=tmp_path / "o") == tmp_path / "o" / "report"
    run_file(file, out=tmp_path, data=tmp_path / "mine", threads=1)
    assert asked == [
        (file, tmp_path / "sets", tmp_path / "sets", tmp_path / "o", None),
        (file, tmp_path / "mine", tmp_path / "mine", tmp_path, 1),
    ]


def test_memory_is_refused_where_there_is_no_feature_table(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text('kind = "letor"\n')
    with pytest.raises(InputError, match="--memory: an experiment of kind 'letor' makes no feat"):
        run_file(file, out=tmp_path / "o", memory=2**30)


@pytest.mark.data
@pytest.mark.parametrize("name", experiment_names())
def test_every_installed_experiment_has_a_plan(name, data_folder, tmp_path, capsys):
    """Its file is right, its data are there, and nothing is written."""
    run_file(name, data=data_folder, out=tmp_path / "out", dry_run=True)
    assert capsys.readouterr().out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", experiment_names())
def test_installed_experiments_are_found_by_name_and_sound(name):
    """As far as can be told without their data."""
    path = find_experiment(name)
    assert read_config(path, study_class(kind_of(path)).described).title


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'kind = "poem"', "there is no kind 'poem'; there are ranking"),
        (b"kind = ", "cannot be read as TOML"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    file = tmp_path / "x.toml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        run_file(file, out=tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "query,label\n1,2\n", r"a\.csv is neither .*\.toml.*; of a table, `ltr-feat"),
        ("a.run", "1 Q0 d 1 2.5 x\n", r"a\.run is neither an experiment"),
        ("a.txt", 'kind = "ranking"\n', r"a\.txt: by its ending .*ends in \.toml: rename it"),
        ("a.dat", "1 qid:1 1:x\n", r"a\.dat, line 1: '1:x' has no number"),
        ("a.conf", 'kind = "poem"\n', "there is no kind 'poem'"),
    ],
)
def test_files_are_told_by_their_endings_and_content(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        run_file(tmp_path / name, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_file_lists_the_experiments(tmp_path):
    with pytest.raises(InputError, match=r"nothing: no such file.*there are .*demo"):
        run_file("nothing", out=tmp_path)


@pytest.mark.parametrize("folder", [".", "nowhere"])
def test_a_data_folder_is_refused_by_standard_experiments(folder, tmp_path):
    """They have no file whose paths it could be for; it was ignored, even where there was none."""
    rows = tmp_path / "rows.txt"
    rows.write_text("1 qid:1 1:0.5\n0 qid:1 1:0.25\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"--data: .*rows\.txt is no experiment file"):
        run_file(rows, data=tmp_path / folder, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
