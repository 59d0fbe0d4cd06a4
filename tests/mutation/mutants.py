"""Mutants: single changes that the tests must notice, in the code that evidence rests on.

Draws seeded changes (another comparison or operator, another number, a negated condition, an empty
loop...) of the modules below, makes each in a copy of the project, and runs the tests named beside
the module there. A mutant that passes them has survived: either a test is missing, or the change
changes nothing, which belongs into ``survivors.md`` with the reason. At most one change is drawn
for a line. Results are kept in ``--out``, so that a stopped run goes on where it was.

    pip install cosmic-ray
    python tests/mutation/mutants.py --out FOLDER [--n 300] [--seed 0] [--module letor/folds.py]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ltr_base", "letor", "ssi_models", "ltr_features", "tests", "docs")
#: The modules, and the tests that must notice.
TESTS = {
    "letor/measures.py": "letor/test_measures.py letor/test_missing.py letor/test_judged_runs.py",
    "letor/evaluation.py": "letor/test_measures.py letor/test_missing.py letor/test_judged_runs.py",
    "letor/judged_runs.py": "letor/test_judged_runs.py letor/test_missing.py",
    "letor/folds.py": "letor/test_folds.py letor/test_fold_files.py",
    "letor/rankers/rankboost.py": "letor/test_boosting.py "
    "contracts/test_rankers.py::test_folders_that_hold_no_such_ranker_are_refused "
    "contracts/test_rankers.py::test_defaults_do_not_change_unnoticed",
    "letor/rankers/adarank.py": "letor/test_boosting.py "
    "contracts/test_rankers.py::test_folders_that_hold_no_such_ranker_are_refused "
    "contracts/test_rankers.py::test_defaults_do_not_change_unnoticed",
    "letor/kernels/rank_boosting.py": "letor/test_boosting.py",
    "ltr_features/columns/out_of_fold.py": "ltr_features/test_feature_table.py "
    "ltr_features/test_trained.py ltr_features/test_remarks.py",
    "ltr_features/feature_table.py": "ltr_features/test_feature_table.py "
    "ltr_features/test_trained.py ltr_features/test_remarks.py "
    "ltr_features/feature_builder letor/test_missing.py",
    "ssi_models/mixing.py": "ssi_models/test_variants.py ssi_models/test_topics.py "
    "ssi_models/test_language_model.py ssi_models/test_baselines.py ssi_models/test_projections.py",
    "ssi_models/training/batches.py": "ssi_models/test_training.py ssi_models/test_scorers.py "
    "ssi_models/test_candidate_lists.py ssi_models/test_losses.py ssi_models/test_preferences.py",
    "ssi_models/training/held_out.py": "ssi_models/test_preferences.py ssi_models/test_losses.py "
    "ssi_models/test_training.py ssi_models/test_choosing.py ssi_models/test_joint_fits.py",
    "ssi_models/word_weight.py": "ssi_models/test_joint_fits.py ssi_models/test_remarks.py",
    "ltr_features/studies/statistics/significance.py": "ltr_features/studies/test_significance.py "
    "ltr_features/studies/test_groups_and_refits.py",
    "ltr_features/studies/statistics/paired_tests.py": "ltr_features/studies/test_significance.py "
    "ltr_features/studies/test_groups_and_refits.py",
    "ltr_features/studies/statistics/hard_queries.py": "ltr_features/studies/test_hard_queries.py "
    "ltr_features/studies/test_groups_and_refits.py",
}  # fmt: skip
KINDS = (
    "ReplaceComparisonOperator", "ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Div", "ReplaceBinaryOperator_Div_Mul",
    "ReplaceBinaryOperator_Pow_Mul", "ReplaceBinaryOperator_FloorDiv_Mul",
    "ReplaceBinaryOperator_Mod_Mul", "ReplaceUnaryOperator_USub_UAdd",
    "ReplaceUnaryOperator_Delete", "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop",
)  # fmt: skip
#: Seconds after which a mutant counts as noticed: it hangs.
LIMIT = 600


class Mutant(NamedTuple):
    module: str
    line: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} {self.operator.split('/')[-1]} {self.occurrence}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every change of a module."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast((ROOT / module).read_text(encoding="utf-8"))))
    for name in operator_names():
        if not name.removeprefix("core/").startswith(KINDS) or name.endswith(("_Is", "_IsNot")):
            continue
        operator, occurrence = get_operator(name)(), 0
        for node in nodes:
            for (line, _), _ in operator.mutation_positions(node):
                if node.parent.type != "parameters":  # the star before arguments that go by name
                    yield Mutant(module, line, name, occurrence)
                occurrence += 1


def drawn(modules: list[str], n: int, seed: int) -> list[Mutant]:
    """n changes, each of another line."""
    every = [mutant for module in modules for mutant in mutants_of(module)]
    chosen: dict[tuple[str, int], Mutant] = {}
    for i in np.random.default_rng(seed).permutation(len(every)):
        chosen.setdefault(every[i][:2], every[i])
    return list(chosen.values())[:n]


def outcome_of(mutant: Mutant, tree: Path) -> dict[str, Any]:
    """What becomes of a mutant in a copy of the project."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    path = tree / mutant.module
    original = path.read_text(encoding="utf-8")
    changed = mutate_code(original, get_operator(mutant.operator)(), mutant.occurrence)
    lines = zip(original.splitlines(), changed.splitlines(), strict=False)
    before, after = next((a, b) for a, b in lines if a != b)
    tests = [f"tests/{name}" for name in TESTS[mutant.module].split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        path.write_text(changed, encoding="utf-8")
        result = subprocess.run(
            command, cwd=tree, env=environment, timeout=LIMIT, capture_output=True, check=False
        )
        survived = result.returncode == 0
    except subprocess.TimeoutExpired:
        survived = False
    finally:
        path.write_text(original, encoding="utf-8")
    return {"survived": survived, "before": before.strip(), "after": after.strip()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of results and copies")
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", action="append", choices=list(TESTS), help="only these")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    log = given.out / "results.jsonl"
    known = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    results = {entry["mutant"]: entry for entry in known}
    wanted = drawn(given.module or list(TESTS), given.n, given.seed)
    trees: SimpleQueue[Path] = SimpleQueue()
    for worker in range(given.workers):
        tree = given.out.resolve() / f"copy-{worker}"
        shutil.rmtree(tree, ignore_errors=True)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, tree / package)
        for file in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / file, tree / file)
        trees.put(tree)

    def work(mutant: Mutant) -> None:
        if mutant.name in results:
            return
        tree = trees.get()
        entry = {"mutant": mutant.name, **outcome_of(mutant, tree)}
        trees.put(tree)
        results[mutant.name] = entry
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        if entry["survived"]:
            print(f"{mutant.name}\n    {entry['before']}\n    {entry['after']}", flush=True)

    with ThreadPoolExecutor(given.workers) as pool:
        list(pool.map(work, wanted))
    survivors = sum(results[mutant.name]["survived"] for mutant in wanted)
    print(f"{len(wanted)} mutants, {len(wanted) - survivors} noticed, {survivors} survived")


if __name__ == "__main__":
    main()
