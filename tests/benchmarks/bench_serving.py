"""Load on the HTTP service: requests per second and waiting times, 1,000 candidates to a request.

    python tests/benchmarks/bench_serving.py [n_documents]

The pipeline is that of bench_scoring.py, saved and served by `ltr-features serve` in a process of
its own; the clients are threads of this one, each of which asks again as soon as it has its answer.
Documents' representations are cached; candidates are sent with the request.
"""

import http.client
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from bench_scoring import N_CANDIDATES, collection, pipeline_of
from page import processor
from timing import seconds_of, timed

N_REQUESTS = 400


def ask(port: int, body: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/rank", body)
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content


def measure(port: int, bodies: list[str], n_clients: int) -> None:
    asked = itertools.islice(itertools.cycle(bodies), N_REQUESTS)
    with ThreadPoolExecutor(n_clients) as clients:
        seconds, times = timed(
            lambda: list(clients.map(lambda body: seconds_of(ask, port, body), asked))
        )
    rate = N_REQUESTS / seconds
    p50, p99 = np.percentile(np.array(times) * 1e3, [50, 99])
    load = os.getloadavg()[0]
    print(
        f"{n_clients:3} clients: {rate:6.1f} requests/s, p50 {p50:6.1f} ms, p99 {p99:6.1f} ms "
        f"(load {load:.1f})",
        flush=True,
    )


def main() -> None:
    n_documents = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    data = collection(n_documents)
    with tempfile.TemporaryDirectory() as folder:
        pipeline_of(data).save(Path(folder) / "service")
        server = subprocess.Popen(
            [sys.executable, "-m", "ltr_features.cli", "serve", f"{folder}/service", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            port = int(server.stdout.readline().rpartition(":")[2].removesuffix("/rank\n"))
            print(f"{processor()}, {os.cpu_count()} cores; ", end="")
            print(f"{n_documents:,} documents, {N_CANDIDATES:,} candidates")
            for k in (10, N_CANDIDATES):
                bodies = [
                    json.dumps({"query": q, "documents": data.document_ids[:N_CANDIDATES], "k": k})
                    for q in data.query_texts
                ]
                ask(port, bodies[0])
                print(f"the best {k:,} of them answered:")
                for n_clients in (1, 2, 4, 16):
                    measure(port, bodies, n_clients)
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
