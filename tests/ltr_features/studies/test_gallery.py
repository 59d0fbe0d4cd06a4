"""The gallery: what is shown of finished experiments, and what stays behind."""

import json
import shutil

import pytest
from folders import different
from small_studies import WRITERS
from toys import run

from letor.errors import InputError
from ltr_features.studies.gallery import Exhibit, write_gallery
from ltr_features.studies.run import run_file


@pytest.fixture(scope="module")
def outs(tmp_path_factory):
    """Finished studies: of tables, and of systems."""
    folder = tmp_path_factory.mktemp("gallery")
    for kind in ("letor", "compare"):
        toml = folder / f"{kind}.toml"
        toml.write_text(WRITERS[kind](folder / "data" / kind), encoding="utf-8")
        run_file(toml, data=folder / "data" / kind, out=folder / kind)
    return [folder / "letor", folder / "compare"]


def test_every_experiment_has_an_entry_and_a_folder(outs, tmp_path):
    out = tmp_path / "reports"
    assert "2 experiments" in run("gallery", *outs, "--out", out).output
    assert "1 experiment:" in run("gallery", outs[0], "--out", tmp_path / "one").output
    index = (out / "README.md").read_text(encoding="utf-8")
    assert index.index("letor/overview.svg") < index.index("compare/overview.svg")
    summary = (outs[1] / "report" / "summary.txt").read_text(encoding="utf-8")
    page = (out / "compare" / "README.md").read_text(encoding="utf-8")
    assert summary in page
    for chart in (out / "compare").glob("*.svg"):
        assert f"({chart.name})" in page
    assert len(list((out / "compare").glob("*.svg"))) == 2
    verdict = next(line for line in summary.splitlines() if "significant" in line).split(": ", 1)
    assert f"**{verdict[-1]}**" in index


def test_maps_of_words_and_documents_stay_behind_as_they_show_texts(tmp_path):
    (tmp_path / "figures").mkdir()
    for name in ("document-map", "overview", "queries-hard-queries", "queries-gains", "word-map"):
        (tmp_path / "figures" / f"{name}.svg").touch()
    charts = Exhibit("mine", tmp_path, {}, None).charts
    assert [chart.stem for chart in charts] == ["overview", "queries-hard-queries"]
    charts[1].unlink()
    charts = Exhibit("mine", tmp_path, {}, None).charts
    assert [chart.stem for chart in charts] == ["overview", "queries-gains"]


@pytest.mark.parametrize(
    ("name", "command"),
    [("demo", "demo --out demo"), ("demo_full", "demo --full --out demo_full")],
)
def test_the_demo_is_made_by_its_own_command(tmp_path, name, command):
    assert Exhibit(name, tmp_path, {}, None).command == f"ltr-features {command}"


def test_the_time_of_all_stages_is_told(outs, tmp_path):
    folder = tmp_path / "compare"
    shutil.copytree(outs[1], folder)
    stage = {"kind": "x", "amount": 1.0}
    times = {"a": {**stage, "seconds": 90.0}, "b": {**stage, "seconds": 150.0}}
    (folder / "times.json").write_text(json.dumps(times))
    write_gallery([folder], tmp_path / "reports")
    assert " (4 min on " in (tmp_path / "reports" / "README.md").read_text(encoding="utf-8")


def test_names_with_signs_of_markdown_and_html_are_shown_as_they_are(outs, tmp_path):
    folder = tmp_path / "compare"
    shutil.copytree(outs[1], folder)
    manifest = folder / "report" / "manifest.json"
    given = json.loads(manifest.read_text(encoding="utf-8"))
    given |= {"title": "Is *b* <best>?", "verdict": "x_1 [b] & `c` did no better than a<b>."}
    manifest.write_text(json.dumps(given), encoding="utf-8")
    write_gallery([folder], tmp_path / "reports")
    page = (tmp_path / "reports" / "compare" / "README.md").read_text(encoding="utf-8")
    for text in (page, (tmp_path / "reports" / "README.md").read_text(encoding="utf-8")):
        assert "# Is \\*b\\* &lt;best&gt;?" in text
        assert "**x\\_1 \\[b\\] &amp; \\`c\\` did no better than a&lt;b&gt;.**" in text
    assert "![Is \\*b\\* &lt;best&gt;?](overview.svg)" in page


def test_folders_of_any_name_are_linked_and_stay(outs, tmp_path):
    names = ["my study (2)", "a's [x] 100%"]
    for name in names:
        shutil.copytree(outs[1], tmp_path / name)
        write_gallery([tmp_path / name], tmp_path / "reports")
    assert write_gallery(outs[:1], tmp_path / "reports") == ["letor", *names[::-1]]
    index = (tmp_path / "reports" / "README.md").read_text(encoding="utf-8")
    assert "(my%20study%20%282%29/overview.svg)](my%20study%20%282%29/README.md)" in index
    assert "run 'my study (2).toml' --data FOLDER --out 'my study (2)'`" in index


def test_nothing_is_by_query_or_document(outs, tmp_path):
    write_gallery(outs, tmp_path / "reports")
    tables = {path.stem for path in (tmp_path / "reports").rglob("*.csv")}
    assert {"means", "comparisons"} <= tables
    assert not tables & {"per_query", "moves", "query_kinds"}
    per_query = outs[1] / "report" / "tables" / "per_query.csv"
    assert per_query.is_file()


def test_an_earlier_gallery_keeps_its_others_and_nothing_else_is_touched(outs, tmp_path):
    out, at_once = tmp_path / "reports", tmp_path / "at once"
    assert write_gallery(outs[:1], out) == ["letor"]
    assert write_gallery(outs[1:], out) == ["compare", "letor"]
    write_gallery(outs[::-1], at_once)
    assert different(out, at_once) == set()
    (out / "letor" / "means.csv").write_text("of an older run")
    assert write_gallery(outs[1:], out) == ["compare", "letor"]
    for given in (outs, outs[::-1]):  # each keeps its place
        assert write_gallery(given, out) == ["compare", "letor"]
    assert different(out, at_once) == set()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not a gallery"):
        write_gallery(outs, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_unfinished_run_is_named(outs, tmp_path):
    (tmp_path / "half").mkdir()
    with pytest.raises(InputError, match=r"half: has no finished report"):
        write_gallery([*outs, tmp_path / "half"], tmp_path / "reports")
    with pytest.raises(
        InputError, match=r"compare and .*compare have the same name, .*: rename one"
    ):
        write_gallery([outs[1], outs[1]], tmp_path / "reports")
    assert not (tmp_path / "reports").exists()
