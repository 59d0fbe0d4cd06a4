"""Run the stages of a study on the workers of a cluster, each as soon as its inputs are ready.

This process plans, holds the output folder, and writes notes and the report; a worker makes the
same plan and fills the folder of one stage. All see the same files. A worker whose code, libraries
or inputs differ would compute another key, and is refused.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.cluster import Cluster
from ltr_features.studies.stages import Planned, StageResult
from ltr_features.studies.study import Study

#: A key among the inputs of a stage, which needs the stage with that key.
_KEY = re.compile(r'"([0-9a-f]{16})"')
#: Stages that wait or run at the same time, per thread of the workers.
_STAGES = 4
_PATIENCE = 30  # seconds to wait for shared storage to show what another machine has written


@dataclass(frozen=True)
class StudyPlan:
    """Everything that a worker needs to construct a study.

    Attributes:
        study: constructs it.
        run: id of the run; a worker keeps its study, and what it has read, during one run.
    """

    study: Callable[[], Study] = field(compare=False)
    run: str


def done_by_workers(study: Study, stages: Sequence[Planned], cluster: Cluster) -> Iterator[Planned]:
    """Run stages on workers, in parallel if they do not depend on each other, and yield them in
    the order of the plan."""
    out, data = str(study.folder.resolve()), str(study.data.resolve())
    same = partial(type(study), study.config, out, data, threads=1, memory=study.memory)
    plan = StudyPlan(same, secrets.token_hex(8))
    of_key = {stage.key: stage.name for stage in stages}
    running: dict[str, Future[StageResult]] = {}

    def run(stage: Planned) -> StageResult:
        keys = _KEY.findall(json.dumps(stage.inputs))
        for name in [*(of_key[key] for key in keys if key in of_key), *stage.after]:
            running[name].result()
        return study.done(replace(stage, make=lambda path: make(stage, path)))

    def make(stage: Planned, path: Path) -> None:
        given = (plan, stage.name, stage.key, str(path.resolve()))
        parts = [cluster.submit(_make, *given, part) for part in range(stage.n_parts)]
        for part in parts:
            cluster.result(part)
        cluster.result(cluster.submit(_make, *given))

    # Stages wait only for earlier ones of the plan, so the threads never all wait.
    with ThreadPoolExecutor(_STAGES * cluster.n_threads) as pool:
        try:
            for stage in stages:
                running[stage.name] = pool.submit(run, stage)
            for stage in stages:
                running[stage.name].result()
                yield stage
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            cluster.cancel()
            raise


def _make(plan: StudyPlan, name: str, key: str, path: str, part: int | None = None) -> None:
    """Fill a stage's folder, or make one part of it beforehand; leftovers of a worker that died do
    no harm."""
    stage = _stage(plan, name, key)
    if part is not None:
        assert stage.make_part is not None
        stage.make_part(Path(path), part)
    elif stage.resumable:
        stage.make(Path(path))
    else:
        with atomic_path(path, kind="folder") as half:
            half.mkdir()
            stage.make(half)


def _stage(plan: StudyPlan, name: str, key: str) -> Planned:
    try:
        stage = _study(plan)[name]
    except InputError as error:  # a plug-in that it lacks, for example
        raise InputError(f"worker on {socket.gethostname()}: {error}") from error
    if stage.key != key:
        raise InputError(
            f"worker on {socket.gethostname()}: the inputs or the code of stage {name} differ "
            "there; install the same versions everywhere, start workers again after a change, and "
            "keep inputs on shared storage"
        )
    return stage


@lru_cache(maxsize=1)
def _study(plan: StudyPlan) -> dict[str, Planned]:
    """The stages of the plan by name."""
    study = plan.study()
    found: dict[str, StageResult] = {}

    def done(stage: Planned) -> StageResult:
        """The result of a stage that another worker has made."""
        if stage.name not in found:
            for _ in range(_PATIENCE):
                result = study.runner.stages.look(stage)
                if result.reused:
                    break
                time.sleep(1)
            else:
                raise InputError(
                    f"worker on {socket.gethostname()}: stage {stage.name} is not in "
                    f"{study.folder} ({result.reason}); keep the output folder on shared storage"
                )
            found[stage.name] = result
        return found[stage.name]

    study.done = done
    return {stage.name: stage for stage in study.stages()}
