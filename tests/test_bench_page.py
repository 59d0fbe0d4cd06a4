"""The page of benchmarks is what was kept of them, and of them alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent / "benchmarks"


@pytest.fixture(scope="module")
def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_page", BENCHMARKS / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_of_what_was_kept(made: ModuleType) -> None:
    assert made.PAGE.read_text(encoding="utf-8") == made.page(made.read())


def test_each_part_names_command_machine_commit_and_whether_it_was_busy(made: ModuleType) -> None:
    kept = {
        "arguments": ["--queries", "20"], "date": "2026-01-02", "commit": "abcdef", "cores": 4,
        "processor": "Some Processor", "load": 3.1, "output": "ours 1 s\npeer 2 s",
    }  # fmt: skip
    page = made.page({"bench_measures.py": kept})
    assert "\n## measures\n\nPer-query measures: our kernels against ranx" in page
    assert "\npython tests/benchmarks/bench_measures.py --queries 20\n" in page
    assert "\nours 1 s\npeer 2 s\n" in page
    assert "2026-01-02, commit `abcdef`, Some Processor, 4 cores" in page
    assert "**busy** with other work (load 3.1)" in page
    quiet = made.page({"bench_measures.py": kept | {"load": 0.2}})
    assert "the machine was quiet" in quiet


def test_what_a_script_prints_is_kept(made: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "bench_this.py"
    script.write_text("import sys; print('given', *sys.argv[1:])", encoding="utf-8")
    kept = made.record(str(script), "a", "b")
    assert kept["output"] == "given a b"
    assert kept["arguments"] == ["a", "b"]
