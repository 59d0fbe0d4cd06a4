"""Memory of the making of a knowledge base by the size of the dump, and of a full English one.

    python tests/benchmarks/bench_knowledge_memory.py [--shares 80 40 20]

Dumps are made up at 1/80, 1/40... of the English Wikipedia's pages. Assumed of the whole: 7 million
articles with 28 links each (200 million), 11 million redirects. Links lead to articles with a
frequency of rank ** -0.6 (the first one gets 0.2 % of all, as the largest articles do); a quarter
of them have one of 16 further anchors of the article, by rank ** -1, the others its title. Texts
are short: they pass through in blocks of 1 MiB whatever their length, and wait on disk as hashes.

The peak is that of the one process that builds, its imports and mapped files included. Beside it,
each process that parses has about 60 MiB, whatever the dump. Links are sorted in parts; dumps with
fewer links than a part would show the part growing, so they are sorted in parts of 1/16 here. What
the real parts take more is measured on the largest dump. A straight line through the two largest
dumps, and that, give the full one: an upper bound, as phrases grow more slowly than pages do.

Measured: 217 MiB at 1/80, 248 at 1/40, the real parts 200 MiB more at 1/20: 2.9 GiB for all.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from timing import timed

from ltr_features.entities import build

ARTICLES, REDIRECTS, LINKS_EACH = 7_000_000, 11_000_000, 28
GOAL_MIB = 4096
_PAGE = "<page><title>{}</title><ns>0</ns><id>{}</id>{}<revision><id>1</id>{}</revision></page>\n"
_TEXT = '<text bytes="9" xml:space="preserve">Some words about it. {}</text>'


def write_dump(path: Path, share: int, seed: int = 0) -> None:
    """A dump of 1 / ``share`` of the English Wikipedia's pages, uncompressed."""
    rng = np.random.default_rng(seed)
    n, redirects = ARTICLES // share, REDIRECTS // share
    with path.open("w", encoding="utf-8") as out:
        out.write("<mediawiki>\n<siteinfo><case>first-letter</case></siteinfo>\n")
        for page in range(n):
            targets = (n * rng.random(LINKS_EACH) ** 2.5).astype(np.int64).tolist()
            longer = (16 ** rng.random(LINKS_EACH)).astype(np.int64).tolist()
            plain = (rng.random(LINKS_EACH) < 0.75).tolist()
            links = [
                f"[[Page {t}]]" if p else f"[[Page {t}|page {t} as {v}]]"
                for t, v, p in zip(targets, longer, plain, strict=True)
            ]
            out.write(_PAGE.format(f"Page {page}", page + 1, "", _TEXT.format(" ".join(links))))
        for page in range(redirects):
            pointer = f'<redirect title="Page {page % n}" />'
            out.write(_PAGE.format(f"Other name {page}", n + page + 1, pointer, ""))
        out.write("</mediawiki>\n")


def peak_of_building(dump: str, folder: str, divided: int) -> tuple[float, dict[str, int]]:
    """MiB of this process at most, its parts ``divided``, and what the knowledge base holds."""
    part = build._PART // divided
    build._CHUNK //= divided
    build._in_links = partial(build._in_links, part=part)
    build._senses = partial(build._senses, part=part)
    facts = build.build_knowledge_base(dump, folder)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, facts


def apart(dump: Path, divided: int) -> tuple[float, dict[str, int]]:
    """:func:`peak_of_building` in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        folder = str(dump.parent / "kb")
        return pool.submit(peak_of_building, str(dump), folder, divided).result()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--shares", type=int, nargs="+", default=[80, 40, 20])
    shares = sorted(arguments.parse_args().shares, reverse=True)
    peaks = []
    for share in shares:
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / "dump.xml"
            write_dump(dump, share)
            seconds, (peak, facts) = timed(apart, dump, 16)
            if share == shares[-1]:
                parts = max(0.0, apart(dump, 1)[0] - peak)
            size = dump.stat().st_size / 1e6
            disk = sum(p.stat().st_size for p in (Path(folder) / "kb").iterdir()) / 1e6
        peaks.append(peak)
        counts = ", ".join(f"{value:,} {name}" for name, value in facts.items())
        print(
            f"1/{share}: peak {peak:,.0f} MiB ({counts}; {size:,.0f} MB of XML in "
            f"{seconds:.0f} s, {disk:,.0f} MB made)",
            flush=True,
        )
    if len(peaks) > 1:
        (x0, x1), (y0, y1) = (1 / shares[-2], 1 / shares[-1]), peaks[-2:]
        full = y1 + (y1 - y0) / (x1 - x0) * (1 - x1) + parts
        print(
            f"full English dump, extrapolated: {full:,.0f} MiB, {parts:,.0f} of them for real "
            f"parts (goal: {GOAL_MIB:,})"
        )


if __name__ == "__main__":
    main()
