"""What happens to a study of any kind: one small class gets plan, reuse, files and manifest."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from folders import written

from letor.errors import InputError
from ltr_features.studies import stages
from ltr_features.studies.config import Section, read_config
from ltr_features.studies.page import pages
from ltr_features.studies.progress import TIMES, Reporter
from ltr_features.studies.stages import NOTE, Planned, code_digest
from ltr_features.studies.study import Contents, Study


class SquaresConfig(Section):
    title: str
    numbers: tuple[int, ...]
    caption: str = ""
    seed: int = 3


MET = "Expectations met: 2 of 5, 1 of them not significantly (2 more not contradicted)."
CHECKS = [("✓", "positive"), ("(✓)", "large"), ("≈", "small"), ("≈", "round"), ("✗", "even")]


class Squares(Study):
    """Squares the numbers of its file, a stage each."""

    timed = ("slow.txt",)

    @classmethod
    def read(cls, path, data):
        return read_config(path, SquaresConfig)

    @property
    def files(self):
        return {"extra": self.identity(self.data / "extra.txt")}

    @property
    def seeds(self):
        return {"numbers": self.config.seed}

    def stages(self):
        return [self._stage(n) for n in self.config.numbers]

    def _stage(self, n):
        def make(folder):
            if n < 0:
                raise KeyboardInterrupt
            (folder / "square").write_text(str(n * n))

        return Planned(
            f"squares/{n}", {"n": n}, make, "one number", "square", code=("letor.errors",)
        )

    def report(self):
        found = [int((self.done(s).path / "square").read_text()) for s in self.stages()]
        text = f"{self.config.caption}{sum(found)}"
        section = pages.Section("all", "All", facts=text, checks=CHECKS)
        means = {"Numbers": {str(n): x for n, x in zip(self.config.numbers, found, strict=True)}}
        page = pages.Document("T", "", [section], means, "square")
        tables = {"squares": pd.DataFrame({"square": found})}
        return Contents(page, tables, {"slow.txt": "0.1 s\n"})


@pytest.fixture
def run(tmp_path):
    """Runs the kind on numbers; the folder of the report."""
    (tmp_path / "extra.txt").write_text("extra")

    def run(*numbers, caption="", **options):
        file = tmp_path / "x.toml"
        file.write_text(f'title = "T"\nnumbers = {list(numbers)}\ncaption = "{caption}"\n')
        config = Squares.read(file, tmp_path)
        return Squares(config, tmp_path / "out", tmp_path).run(**options)

    return run


def test_a_report_is_its_page_its_texts_and_its_tables_and_what_they_were_made_from(run):
    folder = run(2, 3)
    assert "<p>13</p>" in (folder / "report.html").read_text()
    assert "13" in (folder / "tables.txt").read_text()
    assert (folder / "verdict.txt").read_text().splitlines() == [
        MET, "square  Numbers", "───────────────", "2        4.0000",
        "3        9.0000",
    ]  # fmt: skip
    assert pd.read_csv(folder / "squares.csv")["square"].tolist() == [4, 9]
    manifest = json.loads((folder / "manifest.json").read_text())
    charts = {"figures/overview.svg", "figures/overview.pdf"}
    shown = {"report.html", "tables.txt", "tables.tex", "verdict.txt", "squares.csv", *charts}
    assert manifest["verdict"] == MET
    assert manifest["files"] == {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in sorted(shown)
    }
    assert manifest["files with clock times"] == ["slow.txt"]
    assert manifest["inputs"]["extra"]["sha256"] == hashlib.sha256(b"extra").hexdigest()
    assert manifest["settings"]["numbers"] == [2, 3]
    assert manifest["seeds"] == {"numbers": 3}
    assert {"Python", "ltr-features", "numpy", "xgboost", "lightgbm", "statsmodels", "matplotlib",
            "numba", "pyarrow"} <= set(manifest["versions"])  # fmt: skip
    assert set(manifest["machine"]) == {"system", "release", "processor", "cores"}
    assert not re.search(r"/tmp/|/root/", json.dumps(manifest))


def test_the_report_of_another_experiment_is_not_replaced_without_a_word(run, tmp_path, capsys):
    run(2)
    for title, told in (("T", False), ("Other", True), ("Other", False)):
        config = SquaresConfig(title=title, numbers=(2,))
        Squares(config, tmp_path / "out", tmp_path, reporter=Reporter(shown=True)).run()
        said = "".join(capsys.readouterr())
        assert ("the report there, on 'T', will be replaced" in said) == told


def test_the_manifest_names_the_packages_of_plug_ins_by_their_content(run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "their_code.py").write_text("x = 1")
    stage = Squares._stage
    monkeypatch.setattr(
        Squares, "_stage", lambda self, n: replace(stage(self, n), code=("letor", "their_code"))
    )
    found = []
    for text in ("x = 1", "x = 2"):
        (tmp_path / "their_code.py").write_text(text)
        code_digest.cache_clear()
        manifest = json.loads((run(2) / "manifest.json").read_text())
        found.append(manifest["plug-ins"]["their_code"])
    assert found[0] != found[1]


def test_only_what_changed_is_made_again(run, tmp_path):
    before = written(run(2, 3).parent)
    assert written(run(2, 3).parent) == before
    folder = run(2, 3, caption="sum: ")
    after = written(folder.parent)
    changed = {p for p in before if after[p] != before[p]}
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert changed == {*files, folder.parent / TIMES}
    (tmp_path / "extra.txt").write_text("other")
    assert written(run(2, 3, caption="sum: ").parent) != after


def test_a_report_is_made_again_of_what_a_stage_left_anew(run):
    folder = run(2)
    square = folder.parent / "squares" / "2" / "square"
    square.write_text("5")
    run(2)
    assert square.read_text() == "4"
    note = folder.parent / "squares" / "2" / NOTE
    found = json.loads(note.read_text())
    square.write_text("5")  # as a fit that depends on the clock might have
    found["files"]["square"] = hashlib.sha256(b"5").hexdigest()
    note.write_text(json.dumps(found))
    run(2)
    assert "<p>5</p>" in (folder / "report.html").read_text()


def test_a_killed_run_goes_on(run):
    with pytest.raises(KeyboardInterrupt):
        run(2, -1)
    out = run(2, 3).parent
    assert sorted(p.name for p in (out / "squares").iterdir()) == ["2", "3"]
    before = written(out)
    assert all(before[p] == written(out)[p] for p in before)


def test_a_folder_of_others_is_refused_before_anything_runs(run, tmp_path):
    (tmp_path / "out" / "report").mkdir(parents=True)
    (tmp_path / "out" / "report" / "thesis").touch()
    with pytest.raises(InputError, match="was not made by this program"):
        run(2)
    assert not (tmp_path / "out" / "squares").exists()


def test_a_function_is_code_of_its_own():
    """So that a changed table in a kind's file trains nothing again."""
    source = b"import a\n\n\ndef one(x):\n    return x\n\n\ndef two(x):\n    return x + 1\n"
    assert stages._source_of("two", source) == b"def two(x):\n    return x + 1"
    one = code_digest(("ltr_features.studies.kinds.letor:_train",))
    assert one != code_digest(("ltr_features.studies.kinds.letor:_varies",))


def test_pages_and_commands_are_no_code_of_the_package_below_them():
    """So that a changed page or option trains nothing again."""
    package = set(stages._source_files("ltr_features"))
    for above in ("ltr_features.studies.page", "ltr_features.commands"):
        files = stages._source_files(above)
        assert files
        assert package.isdisjoint(files)
