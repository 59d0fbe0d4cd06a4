"""Reading a Wikipedia dump, and making a knowledge base of it, against gensim's WikiCorpus, in the
same run: speed and memory; and the speed of linking.

    python tests/benchmarks/bench_wikipedia.py [--copies 8] [--rounds 2]

The dump is the excerpt shipped with gensim, its pages repeated as further bz2 streams. WikiCorpus
gives tokens only; our reader gives sections, text and links with their anchors. Each run has a
process of its own, so that its peak memory is its own too; of all rounds the fastest counts.
"""

from __future__ import annotations

import argparse
import bz2
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

from timing import timed

from ltr_features.sources.wikipedia import Article, excerpt_path, read_dump

# XML of the English Wikipedia's pages-articles dump, about (25 GB as bz2).
FULL_XML_MB = 100_000


def repeated_excerpt(path: Path, copies: int) -> float:
    """Write the excerpt with its pages ``copies`` times over; return its MB of XML."""
    xml = bz2.decompress(excerpt_path().read_bytes())
    start, end = xml.index(b"<page>"), xml.rindex(b"</page>") + len(b"</page>")
    pages = bz2.compress(xml[start:end] + b"\n")
    path.write_bytes(bz2.compress(xml[:start]) + pages * copies + bz2.compress(xml[end:]))
    return (start + (end - start + 1) * copies + len(xml) - end) / 1e6


def read_ours(path: str, processes: int) -> str:
    articles = links = 0
    for record in read_dump(path, processes=processes):
        if isinstance(record, Article):
            articles += 1
            links += sum(len(section.links) for section in record.sections)
    return f"{articles:,} articles, {links:,} links"


def read_gensim(path: str, processes: int) -> str:
    from gensim.corpora.wikicorpus import WikiCorpus

    corpus = WikiCorpus(path, processes=processes, dictionary={})
    articles = tokens = 0
    for text in corpus.get_texts():
        articles += 1
        tokens += len(text)
    return f"{articles:,} articles, {tokens:,} tokens"


def make_knowledge_base(path: str, processes: int) -> str:
    # Imported here, as the command line does: a spawned process imports the main script again.
    from ltr_features.entities.build import build_knowledge_base

    facts = build_knowledge_base(path, Path(path).parent / "kb", processes=processes)
    return ", ".join(f"{value:,} {name}" for name, value in facts.items())


READERS = {
    "gensim": read_gensim,
    "ours": read_ours,
    "knowledge base": make_knowledge_base,
}


def measure(
    reader: Callable[[str, int], str], path: str, processes: int
) -> tuple[float, float, str]:
    """Seconds, peak MiB of the reading process and its largest child, and what was read."""
    seconds, result = timed(reader, path, processes)
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return seconds, sum(u.ru_maxrss for u in usage) / 1024, result


def run_apart(
    reader: Callable[[str, int], str], path: str, processes: int
) -> tuple[float, float, str]:
    # Forked, because WikiCorpus works in forked processes only.
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(measure, reader, path, processes).result()


def link(folder: Path) -> None:
    """Time linking of the excerpt by the knowledge base in the folder."""
    from ltr_features.entities.wikipedia_linker import WikipediaLinker

    texts = [
        section.text
        for record in read_dump(excerpt_path())
        if isinstance(record, Article)
        for section in record.sections
    ]
    linker = WikipediaLinker(folder, threads=1)
    linker.link(texts[:2])
    seconds, linked = timed(linker.link, texts)
    print(
        f"linking, 1 thread: {sum(map(len, texts)) / 1e6 / seconds:.1f} M characters/s, "
        f"{sum(map(len, linked)):,} mentions in {len(texts):,} texts"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--copies", type=int, default=8)
    arguments.add_argument("--rounds", type=int, default=2)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small.bz2", Path(folder) / "dump.xml.bz2"
        repeated_excerpt(small, 1)
        run_apart(make_knowledge_base, str(small), 1)  # compiles the kernels, which are kept
        link(Path(folder) / "kb")
        megabytes = repeated_excerpt(path, options.copies)
        print(f"{megabytes:.1f} MB of XML, {os.cpu_count()} cores")
        speed: dict[tuple[str, int], float] = {}
        for name, processes in list(product(READERS, (1, 2))) * options.rounds:
            seconds, memory, result = run_apart(READERS[name], str(path), processes)
            fastest = max(speed.get((name, processes), 0.0), megabytes / seconds)
            speed[name, processes] = fastest
            print(
                f"{name:14} {processes} processes: {megabytes / seconds:6.2f} MB/s, peak "
                f"{memory:4.0f} MiB, a full English dump {FULL_XML_MB / fastest / 3600:4.1f} h "
                f"({result})"
            )
        for name, processes in product(("ours", "knowledge base"), (1, 2)):
            ratio = speed[name, processes] / speed["gensim", processes]
            print(f"{name} / gensim, {processes} processes: {ratio:.2f}")
        print(f"ours with 2 / gensim with 1: {speed['ours', 2] / speed['gensim', 1]:.2f}")


if __name__ == "__main__":
    main()
