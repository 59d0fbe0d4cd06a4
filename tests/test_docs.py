"""The documentation's examples run, in the order of their page, on data that the tests make."""

from __future__ import annotations

import os
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from letor.svmlight import read_letor
from ltr_features.cli import app
from ltr_features.clicks.reading import read_click_rows
from ltr_features.sample import write_sample
from ltr_features.studies.kinds.clickthrough_config import TaskConfig
from ltr_features.studies.kinds.clickthrough_tasks import make_task
from ltr_features.studies.run import experiment_names, find_experiment

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCE = re.compile(r"^```(python|console|toml)\n(.*?)^```$", re.S | re.M)
PAGES = [
    "docs/researcher", "docs/engineer", "docs/given", "docs/clicks", "docs/pyterrier",
    "docs/experiments", "docs/extending", "docs/scale", "docs/wiki", "README",
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    if page == "docs/pyterrier":
        pytest.importorskip("pyterrier", reason="the extra pyterrier is not installed")
    monkeypatch.chdir(tmp_path)
    if page == "README":
        write_sample("sample")
    names: dict[str, object] = {}
    blocks = FENCE.findall((DOCS.parent / f"{page}.md").read_text(encoding="utf-8"))
    assert blocks
    for kind, block in blocks:
        if kind == "toml":
            Path("my-experiment.toml").write_text(block, encoding="utf-8")
            continue
        if kind == "python":
            exec(compile(block, f"{page}.md", "exec"), names)
            continue
        for line in block.replace("\\\n", "").splitlines():
            assert line.startswith("$ ltr-features "), line
            arguments = shlex.split(line.removeprefix("$ ltr-features "))
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert result.exit_code == 0, result.output
    if page == "docs/experiments":
        assert "words+SSI" in Path("out/report/summary.txt").read_text(encoding="utf-8")
    if page == "docs/scale":
        assert Path("more.parquet").read_bytes() == Path("rows.parquet").read_bytes()
    if page == "docs/clicks":
        for name, n_pages in (("pages", 2), ("events", 1), ("lines", 1)):
            log = read_click_rows(f"{name}.parquet")
            assert log.clicked.sum() == 1
            assert log.n_pages == n_pages
        task = make_task(TaskConfig(folder="clicked", test="clicks"), Path())
        assert len(task.train) > 0
    if page == "docs/researcher":
        enriched = read_letor("new/Fold1/test.txt")
        assert enriched.X.shape[1] == 47
        assert (enriched.X == read_letor("again.txt").X).all()


def test_the_package_on_the_page_is_the_one_that_is_tested():
    page = (DOCS / "extending.md").read_text(encoding="utf-8")
    files = re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```$', page, re.S | re.M)
    assert len(files) == 4
    for name, text in files:
        assert text == (DOCS.parent / "tests" / "plugin" / name).read_text(encoding="utf-8")


def test_every_page_is_in_the_contents():
    contents = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.name for path in DOCS.glob("*.md")}
    assert set(re.findall(r"[\w-]+\.md", contents)) == pages
    links = {
        link
        for page in DOCS.glob("*.md")
        for link in re.findall(r"\]\((\w+\.md)", page.read_text())
    }
    assert links <= pages


def test_every_column_of_a_table_has_a_heading():
    """A screen reader says it with each cell."""
    for page in (*DOCS.glob("*.md"), DOCS.parent / "README.md"):
        heads = re.findall(r"^\|(.*)\|\n\|[-:|]+\|$", page.read_text(encoding="utf-8"), re.M)
        for head in heads:
            assert all(title.strip() for title in head.split("|")), f"{page.name}: {head}"


def test_tables_come_from_the_program():
    spec: dict[str, object] = {}
    exec((DOCS / "hooks.py").read_text(encoding="utf-8"), spec)
    fill = spec["on_page_markdown"]
    for page, wanted in (
        ("columns", "| 25 | `bm25_whole` |"),
        ("columns", "c (k1 + 1) / (c + k1 (1 - b + b |d| / avgdl))"),
        ("models", "| `ssi` | f(q, d) = "),
        ("measures", "LETOR 4.0"),
        ("api", "::: ssi_models.ssi.low_rank.LowRankSSI\n    options: { members: false }"),
        (
            "toml",
            "parts, 4 or more.<br><small>whole number; default `5`</small> |",
        ),
        ("toml", "| `seed` | seed of all draws.<br>"),  # the last one before "Raises"
    ):
        text = fill((DOCS / f"{page}.md").read_text(encoding="utf-8"))  # type: ignore[operator]
        assert wanted in text
        assert "{{" not in text


def test_rules_that_families_have_in_common_are_on_the_page_once():
    spec: dict[str, object] = {}
    exec((DOCS / "hooks.py").read_text(encoding="utf-8"), spec)
    columns = spec["columns"]()  # type: ignore[operator]
    assert columns.count("doc2vec vectors of their abstracts") == 1


def test_modules_that_pages_name_are_there():
    dotted = re.compile(r"(?<![\w/.-])((?:letor|ssi_models|ltr_features|ltr_base)(?:\.\w+)+)")
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    names = set(dotted.findall(text))
    assert "ltr_features.columns.out_of_fold" in names
    for name in sorted(names - {"ltr_features.pyterrier"}):  # needs an extra
        pkgutil.resolve_name(name)


def test_every_key_of_installed_experiments_is_on_the_page():
    spec: dict[str, object] = {}
    exec((DOCS / "hooks.py").read_text(encoding="utf-8"), spec)
    page = spec["experiments"]()  # type: ignore[operator]
    explained = "| `cjk_bigrams` | take pairs of neighbouring characters"  # of [text] and of tasks
    assert page.count(explained) == page.count("| `cjk_bigrams` |") == 3
    parts = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.S | re.M))
    assert set(parts) == {"ranking", "matching", "clickthrough", "clicks", "letor", "compare"}
    for name in experiment_names():
        raw = tomllib.loads(find_experiment(name).read_text(encoding="utf-8"))
        known = set(re.findall(r"^\| `(\w+)` \|", parts[raw["kind"]], re.M))
        tables = [t for value in raw.values() if isinstance(value, list) for t in value]
        for table in [raw, *(t for t in tables if isinstance(t, dict))]:
            assert set(table) <= known


def test_no_path_of_a_machine_is_named():
    for path in [*DOCS.rglob("*"), DOCS.parent / "README.md"]:
        if path.suffix in (".md", ".py"):
            assert os.sep + "root" not in path.read_text(encoding="utf-8")


def test_figures_of_the_demo_are_those_of_its_checked_in_runs():
    """README and evidence.md say what ``reports/demo`` and ``demo_full`` have: no page keeps those
    of an older run."""
    root = DOCS.parent
    texts = {
        page: " ".join((root / page).read_text(encoding="utf-8").split())
        for page in ("README.md", "docs/evidence.md")
    }
    once, full = (
        pd.read_csv(root / "reports" / name / "means.csv").set_index(["study", "system"])["NDCG@10"]
        for name in ("demo", "demo_full")
    )
    tested = pd.read_csv(root / "reports/demo_full/comparisons.csv")
    tested = tested[tested["measure"] == "NDCG@10"].set_index(["study", "system", "baseline"])
    studies = ("Unseen queries", "Unseen articles")
    rows = {
        "the 46 word columns": "words", "all 83 columns": "everything", "words+SSI": "words+SSI",
        "words+LSA": "words+LSA", "words+embeddings": "words+embeddings",
    }  # fmt: skip
    for label, system in rows.items():
        values = r" ▲? ?".join(f"{once[study, system]:.4f}" for study in studies)
        assert re.search(f"{re.escape(label)} {values}", texts["README.md"]), label
    words, everything = (
        " and ".join(f"{full[study, system]:.3f}".removeprefix("0") for study in studies)
        for system in ("words", "everything")
    )
    assert f"{words} for the 46 columns, {everything} for all 83" in texts["README.md"]

    def said(system: str, page: str, form: str) -> None:
        for study in studies:
            row = tested.loc[(study, system, "words+LSA")]
            p = f"{row.p_corrected:.3f}" if row.p_corrected < 0.1 else f"{row.p_corrected:.2f}"
            values = {
                "difference": f"{row.difference:.3f}".replace("0.", ".", 1),
                "relative": f"{row.relative:.0%}".replace("%", " %"),
                "p": p.removeprefix("0"),
            }
            text = form.format(**values)
            assert text in texts[page], text

    said("everything", "README.md", "{difference}")
    said("words+SSI", "README.md", "({difference}, p = {p})")
    said("everything", "docs/evidence.md", "{relative}")
    over_words = [tested.loc[(study, "everything", "words")].relative for study in studies]
    assert (
        "In the demo (`--full`) everything gains {:.0%} (unseen queries) and {:.0%} (unseen".format(
            *over_words
        ).replace("%", " %")
        in texts["docs/evidence.md"]
    )
