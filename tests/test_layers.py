"""Imports run down the list of rooms, never up, those inside functions included; no circles."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ltr_base", "ssi_models", "letor", "ltr_features")
#: Rooms from the door down. A file may import from its own line and from those below it;
#: ssi_models and letor know nothing of each other.
ROOMS = """
ltr_features.__main__
ltr_features.cli
ltr_features.commands
ltr_features.studies.gallery
ltr_features.studies.run
ltr_features.studies.standard_experiment
ltr_features.studies.kinds
ltr_features.studies.study ltr_features.studies.runner ltr_features.studies.workers
ltr_features.studies.page
ltr_features.studies.statistics ltr_features.studies
ltr_features.pyterrier ltr_features.serving
ltr_features.scoring ltr_features.sample ltr_features.featuresets
ltr_features.feature_builder ltr_features.pipeline
ltr_features.fitted_builder
ltr_features.column_workers ltr_features.rank_workers
ltr_features.blocks ltr_features.stored_folds ltr_features.fold_columns
ltr_features.feature_files
ltr_features.row_columns ltr_features.saved_searches
ltr_features.feature_table ltr_features.remarks ltr_features.added_documents
ltr_features.candidates
ltr_features.candidate_kinds
ltr_features.columns
ltr_features.entities
ltr_features.embeddings ltr_features.sources ltr_features.clicks
ltr_features.text
ltr_features.cluster
ltr_features.part_store
ltr_features.kernels
ltr_features
letor
ssi_models
ltr_base
"""
RANK = {room: rank for rank, line in enumerate(ROOMS.split("\n")) for room in line.split()}
#: The names that a package hands out at its top are imported when they are asked for.
LAZY = {"ltr_features", "ltr_features.columns", "letor", "letor.rankers", "ssi_models"}


def room_of(module: str) -> str:
    """The longest name in the list that a module begins with."""
    return max((r for r in RANK if f"{module}.".startswith(f"{r}.")), key=len)


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


MODULES = {module_name(p): p for name in PACKAGES for p in sorted((ROOT / name).rglob("*.py"))}


def imported_modules(path: Path) -> set[str]:
    """Our modules that a file imports, also inside functions and for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (below & set(MODULES)) or {node.module}
    return found & set(MODULES)


@pytest.mark.parametrize("module", sorted(set(MODULES) - LAZY))
def test_imports_run_down(module: str) -> None:
    rank = RANK[room_of(module)]
    for imported in imported_modules(MODULES[module]):
        assert rank <= RANK[room_of(imported)], f"{module} imports {imported}"
        if module.startswith("letor"):
            assert not imported.startswith("ssi_models"), f"{module} imports {imported}"


def test_no_circles() -> None:
    left = {name: imported_modules(MODULES[name]) - {name} for name in set(MODULES) - LAZY}
    while ends := {name for name, imported in left.items() if not imported & set(left)}:
        left = {name: imported for name, imported in left.items() if name not in ends}
    assert not left, f"these import each other, or from those that do: {sorted(left)}"
