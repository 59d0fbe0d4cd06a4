"""The page of benchmarks: runs them, keeps what they print, and makes ``docs/benchmarks.md`` of it.

    python tests/benchmarks/page.py bench_measures.py --queries 2000   # run it, keep its output
    python tests/benchmarks/page.py                                    # write the page

What is kept is in ``outputs.json`` beside this file: command, output, date, commit, processor, and
how busy the machine was with other work before the run.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
OUTPUTS = HERE / "outputs.json"
PAGE = HERE.parents[1] / "docs" / "benchmarks.md"
#: Load before a run, in cores, above which times are told to be those of a busy machine.
QUIET = 0.5
INTRODUCTION = """\
# Benchmarks

What each benchmark printed, as it stands, with the command that runs it and the machine that it ran
on. Ours and the peers ran one after the other in the same run, so that *ratios* hold even where the
machine had other work; a time from a busy machine is no time to quote. The scripts are in
`tests/benchmarks`, and say what they measure; some read data sets from the folder that `LTR_DATA`
names. Those that are not here take longer than three minutes.
`python tests/benchmarks/page.py SCRIPT` runs one again and keeps its output,
`python tests/benchmarks/page.py` writes this page.
"""


def record(script: str, *arguments: str) -> dict[str, object]:
    """Run a benchmark; what it printed, and where.

    Raises:
        CalledProcessError: it failed.
    """
    load = os.getloadavg()[0]
    ran = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],
        cwd=HERE, stdout=subprocess.PIPE, text=True, check=False,  # a tree without git has none
    )  # fmt: skip
    return {
        "arguments": list(arguments),
        "date": date.today().isoformat(),
        "commit": commit.stdout.strip() or "unknown",
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": round(load, 1),
        "output": ran.stdout.rstrip(),
    }


def page(outputs: Mapping[str, Mapping[str, object]]) -> str:
    """The page, of what was kept of each script."""
    return "\n".join([INTRODUCTION, *(_part(name, outputs[name]) for name in sorted(outputs))])


def _part(script: str, kept: Mapping[str, object]) -> str:
    told = ast.get_docstring(ast.parse((HERE / script).read_text(encoding="utf-8"))) or ""
    title, _, _ = told.partition("\n\n")
    command = shlex.join(["python", f"tests/benchmarks/{script}", *kept["arguments"]])
    busy = float(str(kept["load"])) > QUIET
    how = f"**busy** with other work (load {kept['load']})" if busy else "quiet"
    return (
        f"## {script.removeprefix('bench_').removesuffix('.py')}\n\n{' '.join(title.split())}\n\n"
        f"```sh\n{command}\n```\n\n```text\n{kept['output']}\n```\n\n"
        f"{kept['date']}, commit `{kept['commit']}`, {kept['processor']}, "
        f"{kept['cores']} cores; the machine was {how}.\n"
    )


def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def read() -> dict[str, dict[str, object]]:
    """What was kept."""
    return json.loads(OUTPUTS.read_text(encoding="utf-8"))


def main(arguments: list[str]) -> None:
    if arguments:
        kept = read() if OUTPUTS.exists() else {}
        kept[arguments[0]] = record(*arguments)
        text = json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True)
        OUTPUTS.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(read()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
