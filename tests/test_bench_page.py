"""The page of benchmarks is what was kept of them, and of them alone."""

from __future__ import annotations

from pathlib import Path

import page


def test_the_page_is_made_of_what_was_kept() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(page.read())


def test_each_part_names_command_machine_commit_and_whether_it_was_busy() -> None:
    kept = {
        "arguments": ["--queries", "20"], "date": "2026-01-02", "commit": "abcdef", "cores": 4,
        "processor": "Some Processor", "load": 3.1, "output": "ours 1 s\npeer 2 s",
    }  # fmt: skip
    text = page.page({"bench_measures.py": kept})
    assert "\n## measures\n\nPer-query measures: ours against ranx" in text
    assert "\npython tests/benchmarks/bench_measures.py --queries 20\n" in text
    assert "\nours 1 s\npeer 2 s\n" in text
    assert "2026-01-02, commit `abcdef`, Some Processor, 4 cores" in text
    assert "**busy** with other work (load 3.1)" in text
    quiet = page.page({"bench_measures.py": kept | {"load": 0.2}})
    assert "the machine was quiet" in quiet


def test_what_a_script_prints_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "bench_this.py"
    script.write_text("import sys; print('given', *sys.argv[1:])", encoding="utf-8")
    kept = page.record(str(script), "a", "b")
    assert kept["output"] == "given a b"
    assert kept["arguments"] == ["a", "b"]
