"""Wikipedia dump to knowledge base against gensim's WikiCorpus (text only), and linking speed.

    python tests/benchmarks/bench_entities.py [--copies 8] [--processes 2]

The dump is the excerpt shipped with gensim, its pages repeated. Each run has a process of its own,
so that its peak memory is its own too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from bench_wikipedia import FULL_XML_MB, read_gensim, repeated_excerpt, run_apart

from ltr_features.sources.wikipedia import Article, excerpt_path, read_dump


def build_ours(path: str, processes: int) -> str:
    # Imported here, as the command line does: a spawned process imports the main script again.
    from ltr_features.entities.build import build_knowledge_base

    facts = build_knowledge_base(path, Path(path).parent / "kb", processes=processes)
    return ", ".join(f"{value:,} {name}" for name, value in facts.items())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--copies", type=int, default=8)
    arguments.add_argument("--processes", type=int, default=2)
    options = arguments.parse_args()
    from ltr_features.entities.wikipedia_linker import WikipediaLinker

    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small.bz2", Path(folder) / "dump.xml.bz2"
        repeated_excerpt(small, 1)
        build_ours(str(small), 1)  # compiles the kernels
        megabytes = repeated_excerpt(path, options.copies)
        speed = {}
        for name, reader in (("gensim", read_gensim), ("ours", build_ours)):
            seconds, memory, result = run_apart(reader, str(path), options.processes)
            speed[name] = megabytes / seconds
            print(
                f"{name:6} {options.processes} processes: {speed[name]:6.2f} MB/s of XML, peak "
                f"{memory:4.0f} MiB, a full English dump {FULL_XML_MB / speed[name] / 3600:4.1f} h "
                f"({result})"
            )
        print(f"ours / gensim: {speed['ours'] / speed['gensim']:.2f}")
        build_ours(str(small), 1)
        texts = [
            section.text
            for record in read_dump(excerpt_path())
            if isinstance(record, Article)
            for section in record.sections
        ]
        linker = WikipediaLinker(Path(folder) / "kb", threads=1)
        linker.link(texts[:2])
        began = time.perf_counter()
        linked = linker.link(texts)
        seconds = time.perf_counter() - began
        print(
            f"linking, 1 thread: {sum(map(len, texts)) / 1e6 / seconds:.1f} M characters/s, "
            f"{sum(map(len, linked)):,} mentions in {len(texts):,} texts"
        )


if __name__ == "__main__":
    main()
