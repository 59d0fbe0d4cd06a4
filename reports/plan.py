"""What an experiment would do, without doing it."""

from __future__ import annotations

from reports.experiment import Experiment
from reports.identity import size_of
from reports.tables import aligned


def plan_text(experiment: Experiment) -> str:
    """A table of all stages: what each has to do, and whether an earlier run left it."""
    rows = []
    for stage in experiment.plan():
        found = experiment.stages.look(stage.name, stage.inputs, code=stage.code)
        megabytes = f"{size_of(found.path) / 1e6:,.1f} MB" if found.path.is_dir() else ""
        state = "cached" if found.reused else f"to do: {found.reason}"
        rows.append([stage.name, stage.size, state, megabytes])
    n_cached = sum(row[2] == "cached" for row in rows)
    table = aligned(["Stage", "Size", "State", "On disk"], rows, left=3)
    return f"{table}\n{len(rows)} stages, {n_cached} cached, {len(rows) - n_cached} to do."
