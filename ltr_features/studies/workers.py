"""Stages of a study made by the workers of a cluster, each as soon as what it needs is there.

This process plans, holds the output folder, and writes notes and the report; a worker makes the
same plan, and fills the folder of one stage. All see the same files, and a worker whose code,
libraries or inputs are others would make another key, and is refused.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from letor.errors import InputError
from ltr_base.machine import temporary_paths
from ltr_features.cluster import Cluster
from ltr_features.studies.runner import Planned
from ltr_features.studies.stages import StageResult
from ltr_features.studies.study import Study

#: A key among the inputs of a stage: it needs the stage that has it.
_KEY = re.compile(r'"([0-9a-f]{16})"')
#: Stages that wait or run at one time, for each thread of the workers.
_STAGES = 4
_PATIENCE = 30  # seconds until shared storage shows what another machine has written


@dataclass(frozen=True)
class StudyPlan:
    """What a worker makes a study from.

    Attributes:
        kind, config, out, data, memory: as of :class:`~ltr_features.studies.study.Study`.
        run: of one run; a worker keeps its study, and what that has read, while it lasts.
    """

    kind: type[Study] = field(compare=False)
    config: Any = field(compare=False)
    out: str = field(compare=False)
    data: str = field(compare=False)
    memory: int | None = field(compare=False)
    run: str


def done_by_workers(study: Study, stages: Sequence[Planned], cluster: Cluster) -> Iterator[Planned]:
    """Run stages on workers, those side by side that do not need each other; in the order of the
    plan."""
    out, data = str(study.folder.resolve()), str(study.data.resolve())
    plan = StudyPlan(type(study), study.config, out, data, study.memory, secrets.token_hex(8))
    of_key = {study.key(stage): stage.name for stage in stages}
    running: dict[str, Future[StageResult]] = {}

    def run(stage: Planned) -> StageResult:
        keys = _KEY.findall(json.dumps(stage.inputs))
        for name in [*(of_key[key] for key in keys if key in of_key), *stage.after]:
            running[name].result()
        return study.done(replace(stage, make=lambda path: make(stage, path)))

    def make(stage: Planned, path: Path) -> None:
        given = (plan, stage.name, study.key(stage), str(path.resolve()))
        parts = [cluster.submit(_make_part, *given, part) for part in range(stage.n_parts)]
        for part in parts:
            cluster.result(part)
        cluster.result(cluster.submit(_make_stage, *given))

    # A stage waits for earlier ones of the plan only, so that some thread always works.
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


def _make_stage(plan: StudyPlan, name: str, key: str, path: str) -> None:
    """Fill a stage's folder; what a worker that died has left of it does not matter."""
    stage = _stage(plan, name, key)
    if stage.resumable:
        stage.make(Path(path))
        return
    own, _ = temporary_paths(Path(path))
    own.mkdir(parents=True)
    try:
        stage.make(own)
        os.replace(own, path)  # the folder there is empty, unless another worker was faster
    except OSError:
        if not any(Path(path).iterdir()):
            raise
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _make_part(plan: StudyPlan, name: str, key: str, path: str, part: int) -> None:
    """Make one of the parts of a stage that can be made beforehand."""
    stage = _stage(plan, name, key)
    assert stage.make_part is not None
    stage.make_part(Path(path), part)


def _stage(plan: StudyPlan, name: str, key: str) -> Planned:
    stage, own = _study(plan)[name]
    if own != key:
        raise InputError(
            f"worker on {socket.gethostname()}: the inputs or the code of stage {name} are others "
            "there; install one version of everything, and keep inputs on shared storage"
        )
    return stage


@lru_cache(maxsize=1)
def _study(plan: StudyPlan) -> dict[str, tuple[Planned, str]]:
    """Stage and key by name."""
    study = plan.kind(plan.config, plan.out, plan.data, threads=1, memory=plan.memory)
    found: dict[str, StageResult] = {}

    def done(stage: Planned) -> StageResult:
        """What another worker has made."""
        if stage.name not in found:
            for _ in range(_PATIENCE):
                result = study.runner.stages.look(stage.name, stage.inputs, code=stage.code)
                if result.reused:
                    break
                time.sleep(1)
            else:
                raise InputError(
                    f"worker on {socket.gethostname()}: stage {stage.name} is not in {plan.out} "
                    f"({result.reason}); keep the output folder on shared storage"
                )
            found[stage.name] = result
        return found[stage.name]

    study.done = done
    return {stage.name: (stage, study.key(stage)) for stage in study.stages()}
