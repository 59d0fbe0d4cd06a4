"""Check an experiment as a whole before anything runs, and report all mistakes at once, each with
its place and, for unknown names, the nearest known one."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

from letor.errors import InputError
from letor.measures import measure_problems
from letor.rankers.registry import get_ranker, ranker_names
from ltr_base.names import listed, nearest, repeated
from ltr_features.candidates import candidate_sources, source_kind
from ltr_features.columns.registry import family_class, get_family
from ltr_features.columns.vector_sources import Doc2VecSource, WordVectorSource
from ltr_features.sources.query_files import SAME_ID, read_query_groups, read_query_times
from ltr_features.sources.registry import check_options, get_source, sources
from ltr_features.studies.config import (
    DATA_ADVICE,
    folder_problems,
    no_such,
    read_config,
    too_large_seed,
)
from ltr_features.studies.kinds.given_files import read_classes
from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.kinds.ranking_models import has_vectors
from ltr_features.studies.kinds.sections import (
    FamilyConfig,
    ModelConfig,
    RankerConfig,
    path_options,
    with_paths,
)
from ltr_features.studies.statistics.significance import CORRECTIONS
from ltr_features.text.analyzer import Analyzer
from ssi_models.registry import MODELS, find_model


def load_config(
    path: str | os.PathLike[str], data: str | os.PathLike[str] = "."
) -> ExperimentConfig:
    """Read and check an experiment file.

    Args:
        data: folder that its paths are relative to.

    Raises:
        InputError: as in :func:`read_config`; or there are unknown names, missing files, or parts
            that do not fit together: all mistakes are listed, one per line.
    """
    return read_config(path, ExperimentConfig, lambda config: _problems(config, Path(data)))


def demo_config(
    dump: Path | None = None, seed: int | None = None, repeats: int = 1
) -> ExperimentConfig:
    """The experiment that ``ltr-features demo`` runs, optionally with another dump or seed, or with
    more fits of each system.

    Raises:
        InputError: the seed is larger than rankers take.
    """
    experiments = resources.files("ltr_features.studies") / "experiments"
    config = load_config(Path(str(experiments / "demo.toml")))
    changed: dict[str, Any] = {"repeats": repeats} | ({} if seed is None else {"seed": seed})
    if dump is not None:
        changed["title"] = f"Do semantic columns help to find sections of {dump.name}?"
        given = {"dump": str(dump.absolute())}
        changed["collection"] = config.collection.model_copy(update=given)
        changed["columns"] = tuple(
            part.model_copy(update={"options": part.options | given})
            if "dump" in part.options
            else part
            for part in config.columns
        )
    config = config.model_copy(update=changed)
    for part in config.rankers:
        for problem in _ranker_problems(part, config):
            raise InputError(problem)
    return config


def _problems(config: ExperimentConfig, data: Path) -> list[str]:
    """All mistakes in names, options, files and the way in which parts fit together."""
    return [
        *_collection_problems(config, data),
        *_query_file_problems(config, data),
        *_refused("text", lambda: Analyzer(**config.text.model_dump())),
        *_candidate_problems(config, data),
        *(problem for part in config.columns for problem in _family_problems(part, data)),
        *(problem for part in config.models for problem in _model_problems(part)),
        *(problem for part in config.rankers for problem in _ranker_problems(part, config)),
        *_folder_names(config),
        *_system_problems(config, data),
        *_evaluation_problems(config),
        *_hard_problems(config),
        *_map_problems(config),
    ]


def _collection_problems(config: ExperimentConfig, data: Path) -> Iterator[str]:
    name, options = config.collection.source, config.collection.options
    if name not in sources():
        yield from no_such("collection", "source", [name], sources())
        return
    try:
        source = get_source(name)
        yield from _unknown("collection", options, inspect.signature(source).parameters)
        options = with_paths(source, options, data)
        if name != "wikipedia-sections" or "dump" in options:  # the excerpt needs no path
            known = {k: v for k, v in options.items() if k in inspect.signature(source).parameters}
            check_options(name, known)
    except InputError as error:
        yield f"collection: {error}"
        return
    yield from _missing_files("collection", source, options)


def _query_file_problems(config: ExperimentConfig, data: Path) -> Iterator[str]:
    """Mistakes in the files of groups, times, classes and sources."""
    for name, read in (
        ("groups", read_query_groups),
        ("times", read_query_times),
        ("query_classes", read_classes),
    ):
        file = getattr(config, name)
        try:
            if file is not None:
                read(data / file)
        except InputError as error:
            yield f"{name}: {error}"
    if config.sources not in (None, SAME_ID) and not (data / config.sources).is_file():
        yield f"sources: there is no {data / config.sources}; {DATA_ADVICE}"
    if config.times is not None and all(split.by != "time" for split in config.splits):
        yield 'times: no split is by time; set by = "time", or leave the times out'


def _candidate_problems(config: ExperimentConfig, data: Path) -> Iterator[str]:
    if config.candidates is not None and "candidate_depth" in config.model_fields_set:
        yield "candidates and candidate_depth are both given; give bm25 = { depth = ... }"
    try:
        candidate_sources(config.candidate_settings)
    except InputError as error:
        yield str(error)
        return
    for name, options in config.candidate_settings.items():
        kind = source_kind(name, options)
        yield from _missing_files(f"candidates.{name}", kind, with_paths(kind, options, data))


def _family_problems(part: FamilyConfig, data: Path) -> Iterator[str]:
    place = f"columns, family {part.family!r}"
    try:
        made = family_class(part.family)
    except InputError as error:
        yield f"columns: {error}"
        return
    options = with_paths(made, part.options, data)
    mistakes = [
        *_unknown(place, part.options, inspect.signature(made).parameters),
        *_missing_files(place, made, options),
    ]
    yield from mistakes or _refused(place, lambda: get_family(part.family, **options))


def _model_problems(part: ModelConfig) -> Iterator[str]:
    place = f"models, {part.name!r}"
    kind = find_model(part.model)
    if kind is None:
        yield from no_such(place, "model", [part.model], MODELS)
        return
    known = {**kind.default_params(), **kind.former_params}
    unknown = list(_unknown(place, part.params, known, "params."))
    yield from unknown or _refused(place, lambda: part.recipe.new_model().check_for_parts())


def _ranker_problems(part: RankerConfig, config: ExperimentConfig) -> Iterator[str]:
    place = f"rankers, {part.name!r}"
    if part.ranker not in ranker_names():
        yield from no_such(place, "ranker", [part.ranker], ranker_names())
        return
    try:
        known = inspect.signature(get_ranker(part.ranker)).parameters
    except ImportError as error:
        yield f"{place}: {error}; install the package"
        return
    unknown = list(_unknown(place, part.params, known, "params."))
    mistakes = unknown or [*_refused(place, lambda: get_ranker(part.ranker)(**part.params).check())]
    yield from mistakes
    if "seed" in known and not mistakes:
        own = part.params.get("seed", 0)
        systems = [system for system in config.all_systems if config.ranker_of(system) == part]
        seed = max((own + config.seed + s.seed + config.fits_of(s) - 1 for s in systems), default=0)
        summands = "the file, of a system, of the ranker and of its last fit"
        yield from too_large_seed(place, seed, summands)


def _refused(place: str, make: Callable[[], object]) -> Iterator[str]:
    """Why something cannot be made of the values that the file gives."""
    try:
        make()
    except ValueError as error:
        yield f"{place}: {error}"


def _unknown(
    place: str, given: Mapping[str, Any], known: Mapping[str, Any], prefix: str = ""
) -> Iterator[str]:
    for key in given:
        if key not in known:
            yield f"{place}: unknown parameter {prefix}{key}; {nearest(key, known)}"


def _missing_files(
    place: str, made: Callable[..., Any], options: Mapping[str, Any]
) -> Iterator[str]:
    for name in path_options(made) & set(options):
        value = options[name]
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and not Path(path).exists():
                yield f"{place}: {name}: there is no {path}; {DATA_ADVICE}"


def _folder_names(config: ExperimentConfig) -> Iterator[str]:
    """Names that cannot be those of folders."""
    for what, names in (
        ("systems", [system.name for system in config.all_systems]),
        ("splits", [split.name for split in config.splits]),
        ("rankers", [ranker.name for ranker in config.rankers]),
        ("models", [model.name for model in config.models]),
        ("column families", [part.family for part in config.columns]),
    ):
        yield from folder_problems(what, names)


def _columns_of_families(config: ExperimentConfig, data: Path) -> dict[str, list[str]] | None:
    """Columns of each family; None if they cannot be determined here."""
    try:
        return {part.family: list(part.made(data).column_names) for part in config.columns}
    except Exception:  # already reported by the check of families, or a file would be needed
        return None


def _system_problems(config: ExperimentConfig, data: Path) -> Iterator[str]:
    columns = _columns_of_families(config, data)
    if columns is not None:
        of_families = {*columns, *(c for names in columns.values() for c in names)}
        for name in (model.name for model in config.models if model.name in of_families):
            yield f"models, {name!r}: a family or its column is called so: rename the model"
        columns |= {model.name: [model.name] for model in config.models}
        owner = {column: family for family, names in columns.items() for column in names}
        yield from _overlapping_groups(config, columns)
    if twice := repeated(system.label or system.name for system in config.all_systems):
        yield f"two systems are called {', '.join(twice)} in the verdict: give them other labels"
    rankers = [ranker.name for ranker in config.rankers]
    n_parts = min(split.train_parts for split in config.splits) + 1
    for system in config.systems:
        place = f"system {system.name!r}"
        if columns is not None:
            single = list(dict.fromkeys(c for names in columns.values() for c in names))
            known = list(dict.fromkeys([*columns, *single]))
            yield from no_such(place, "columns", system.columns, known)
            yield from no_such(place, "column", [system.score], single)
            for name in filter(columns.get, [*system.columns, system.score or ""]):
                if (other := owner.get(name, name)) != name:
                    yield f"{place}: {name!r} is a family and a column of {other!r}: rename that"
        yield from no_such(place, "ranker", [*system.rankers, system.ranker or None], rankers)
        if twice := repeated(system.columns):
            yield f"{place}: columns names {', '.join(twice)} twice: leave one out"
        if system.columns and not system.rankers and system.ranker is None and len(rankers) != 1:
            yield f"{place}: name its ranker: {nearest('', rankers)}"
        if config.fits_of(system) == 0 and (system.repeats or 1) > 1:
            yield f"{place}: repeats: the system is not fitted, so there is nothing to repeat"
        if system.score is not None and (system.seed or system.turn):
            yield f"{place}: seed and turn are for rankers, and a score has none: leave them out"
        if system.turn >= n_parts:
            yield (
                f"{place}: turn is {system.turn}, but folds train and validate on {n_parts} parts; "
                f"use 0 to {n_parts - 1}"
            )
    used = [config.ranker_of(system) for system in config.all_systems]
    for ranker in (each for each in config.rankers if each not in used):
        yield f"rankers, {ranker.name!r}: no system has it; name it in one, or leave it out"
    for split in config.splits:
        if split.inner_parts is not None and split.inner_parts > split.train_parts:
            yield (
                f"split {split.name!r}: inner_parts is {split.inner_parts}, but a fold trains on "
                f"{split.train_parts} parts"
            )


def _overlapping_groups(
    config: ExperimentConfig, columns: Mapping[str, list[str]]
) -> Iterator[str]:
    """Column groups that cannot be valued, as what one is left without another one still has."""
    valued = config.evaluation.column_value
    groups = next((s.columns for s in config.all_systems if s.name == valued), ())
    for one, other in combinations(groups, 2):
        if shared := [c for c in columns.get(one, [one]) if c in columns.get(other, [other])]:
            yield (
                f"evaluation.column_value: {one} and {other} of system {valued!r} have columns in "
                f"common ({listed(shared, 3)}), which stay when one of the two is left out: name "
                "only one of them"
            )


def _evaluation_problems(config: ExperimentConfig) -> Iterator[str]:
    evaluation = config.evaluation
    systems = [system.name for system in config.all_systems]
    named = [("comparisons", n) for pair in config.pairs for n in pair]
    named += [(k, n) for k in ("hard_systems", "hard_selectors") for n in getattr(evaluation, k)]
    named += [
        (k, getattr(evaluation, k)) for k in ("hard_baseline", "hard_control", "column_value")
    ]
    for key, name in dict.fromkeys(named):
        yield from no_such(f"evaluation.{key}", "system", [name], systems)
    for one, other in evaluation.comparisons:
        if not any(config.each_pair((one, other))):
            yield f"evaluation.comparisons: {one!r} and {other!r} have no ranker in common"
    for pair in config.pairs:
        if pair[0] == pair[1]:
            yield f"evaluation.comparisons: {pair[0]!r} is compared with itself"
        elif pair[::-1] in config.pairs and pair > pair[::-1]:
            yield (
                f"evaluation.comparisons: {pair[0]!r} and {pair[1]!r} are compared in both "
                "directions, which counts twice in the correction: leave one out"
            )
    for i, expected in enumerate(config.expected):
        splits = [split.name for split in config.splits]
        yield from no_such(f"expected.{i}", "split", [expected.split], splits)
        yield from no_such(f"expected.{i}", "system", [expected.system, expected.baseline], systems)
        computed = evaluation.all_measures
        yield from no_such(f"expected.{i}", "measure", [expected.measure], computed)
    for problem in measure_problems(evaluation.measures, [evaluation.hard_measure]):
        yield f"evaluation: {problem}"
    if repeated(f"{share:g}" for share in evaluation.learning_curve):
        yield "evaluation.learning_curve: a share is named twice: leave one out"
    shown = {name for pair in config.headline_pairs for name in pair}
    if evaluation.learning_curve and not any(
        config.fits_of(s) for s in config.all_systems if s.name in shown
    ):
        yield (
            "evaluation.learning_curve: no system of the first comparison learns from training "
            "queries; leave it out"
        )
    if evaluation.column_value in systems and not config.variants:
        yield "evaluation.column_value: the system needs two column groups or more"
    yield from no_such("evaluation.correction", "method", [evaluation.correction], CORRECTIONS)


def _map_problems(config: ExperimentConfig) -> Iterator[str]:
    for key, source, name in (
        ("word", WordVectorSource, config.word_map),
        ("document", Doc2VecSource, config.document_map),
    ):
        known = [model.name for model in config.models]
        known += [part.family for part in config.columns if has_vectors(part, source)]
        if name is not None and name not in known:
            yield (
                f"{key}_map: no model, and no column family with {key} vectors, is called "
                f"{name!r}; {nearest(name, known)}"
            )


def _hard_problems(config: ExperimentConfig) -> Iterator[str]:
    evaluation = config.evaluation
    if evaluation.hard_baseline is None:
        rules = evaluation.model_fields_set & {"hard_measure", "hard_thresholds", "hard_quantiles"}
        if evaluation.hard_systems or evaluation.hard_selectors or evaluation.hard_control or rules:
            yield "evaluation: hard queries need a hard_baseline"
        return
    if not evaluation.hard_systems:
        yield "evaluation: hard_systems is empty: whose gain on hard queries is wanted?"
    if evaluation.hard_baseline in evaluation.hard_systems:
        yield (
            f"evaluation: hard_systems must not have {evaluation.hard_baseline!r}, the baseline "
            "itself, which would count in the correction"
        )
    if evaluation.hard_control in {evaluation.hard_baseline, *evaluation.hard_selectors}:
        yield "evaluation: hard_control must be neither the baseline nor one of the selectors"
    for name in {evaluation.hard_baseline, *evaluation.hard_systems} & {*evaluation.hard_selectors}:
        yield f"evaluation: hard_selectors must not have {name!r}, which is judged on the queries"
    if not (evaluation.hard_thresholds or evaluation.hard_quantiles):
        yield "evaluation: hard_thresholds and hard_quantiles are empty: when is a query hard?"
    for key in ("hard_thresholds", "hard_quantiles"):
        for limit in (limits := getattr(evaluation, key)):
            if not 0 < limit <= 1:
                yield f"evaluation: {key} must lie above 0 and not above 1, not {limit}"
        if repeated(f"{limit:g}" for limit in limits):
            yield f"evaluation.{key}: a value is named twice: leave one out"
