"""Compare what an experiment gave with what its file says it should give."""

from __future__ import annotations

from collections.abc import Sequence

from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.page.report import Study
from ltr_features.studies.page.verdicts import value


def check_expected(config: ExperimentConfig, studies: Sequence[Study]) -> list[str]:
    """A sentence for each expected number that was not met, and one if some were."""
    by_split = dict(zip((split.name for split in config.splits), studies, strict=True))
    missed = []
    for expected in config.expected:
        study = by_split[expected.split]
        found = float(study.values(expected.system, expected.measure).mean())
        what = f"{expected.measure} of {expected.system}"
        if expected.baseline is not None:
            found -= float(study.values(expected.baseline, expected.measure).mean())
            what += f" minus {expected.baseline}"
        if not abs(found - expected.value) <= expected.tolerance:
            missed.append(
                f"Not as expected: {what} ({study.name}) is {value(found)}, the experiment's file "
                f"expects {value(expected.value)} within {expected.tolerance:g}."
            )
    met = len(config.expected) - len(missed)
    if missed and met:
        missed.append(f"{met} other expected numbers were met.")
    return missed
