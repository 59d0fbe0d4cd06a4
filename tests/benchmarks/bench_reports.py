"""Time and size of the tests' synthetic report on 1,000 queries x 20 systems.

python tests/benchmarks/bench_reports.py [QUERIES] [SYSTEMS]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from timing import timed

from ltr_features.studies.page import html
from ltr_features.studies.page.outputs import write_outputs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))
from example_report import example_report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n_queries", metavar="QUERIES", type=int, nargs="?", default=1000)
    parser.add_argument("n_systems", metavar="SYSTEMS", type=int, nargs="?", default=20)
    n_queries, n_systems = vars(parser.parse_args()).values()
    report = example_report(n_queries, n_systems)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report"
        path.mkdir()
        page, text = timed(html.render, report)
        others, _ = timed(write_outputs, report, path)
        total = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) / 1e6
    print(
        f"{n_queries:,} queries x {n_systems} systems: tests and page {page:.1f} s, "
        f"{len(text.encode()) / 1e6:.2f} MB; all other files {others:.1f} s, {total:.1f} MB"
    )


if __name__ == "__main__":
    main()
