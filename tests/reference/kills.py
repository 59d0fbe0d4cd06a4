"""The demo, killed at random moments and started again, leaves the bytes of one that never was.

``python tests/reference/kills.py 50`` kills it so often, in as many demos as that takes, one after
the other. All files of the output folders are compared but ``times.json``, which has clock times.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from folders import different

from ltr_features.studies.progress import TIMES


def demo(folder: Path, threads: int, seconds: float | None = None) -> bool:
    """Whether a run of the demo came to its end; it is killed after so many seconds, with all
    processes that it has started."""
    command = "import sys; from ltr_features.cli import main; sys.exit(main())"
    options = ["demo", "--out", str(folder), "--threads", str(threads), "--quiet"]
    with (folder.parent / "output").open("w+") as output:
        run = subprocess.Popen(
            [sys.executable, "-c", command, *options],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            run.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            return False
        if run.returncode:
            output.seek(0)
            raise SystemExit(f"exit code {run.returncode}:\n{output.read()}")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=40, help="seconds until a kill, at most")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    left, unequal = arguments.kills, 0
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "whole"
        start = time.perf_counter()
        demo(whole, arguments.threads)
        print(f"never killed: {time.perf_counter() - start:.0f} s", flush=True)
        for number in range(1, arguments.kills + 1):
            killed, moments = Path(temporary) / f"killed{number}", []
            while left > len(moments):
                seconds = rng.uniform(0, arguments.longest)
                if demo(killed, arguments.threads, seconds):
                    break
                moments.append(seconds)
            else:
                demo(killed, arguments.threads)
            left -= len(moments)
            files = different(whole, killed) - {TIMES}
            unequal += len(files)
            n = sum(path.is_file() for path in killed.rglob("*"))
            print(
                f"demo {number}: {len(moments)} kills, after "
                f"{', '.join(f'{s:.1f}' for s in moments)} s; {len(files)} of {n} files differ: "
                f"{sorted(files)}",
                flush=True,
            )
            if not left:
                break
    sys.exit(bool(unequal))


if __name__ == "__main__":
    main()
