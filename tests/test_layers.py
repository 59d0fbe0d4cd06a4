"""Dependencies point one way (ssi_models, letor <- ltr_features <- reports; cli is the door)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = {
    "ssi_models": {"ssi_models"},
    "letor": {"letor"},
    "ltr_features": {"ltr_features", "ssi_models", "letor"},
    "reports": {"reports", "ltr_features", "ssi_models", "letor"},
}
FILES = sorted(p for package in ALLOWED for p in (ROOT / package).rglob("*.py"))


def imported_packages(path: Path) -> set[tuple[str, str]]:
    """(top-level package, dotted module) of every import in a file, lazy ones included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {(name.split(".")[0], name) for name in names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    door = ROOT / "ltr_features"
    is_door = path == door / "cli.py" or path.parent == door / "commands"
    for top, module in imported_packages(path):
        if top in ALLOWED and not is_door:
            assert top in ALLOWED[package], f"{path} imports {module}"
        if not is_door:
            inside = module.startswith(("ltr_features.cli", "ltr_features.commands"))
            assert not inside, f"{path} imports the command line"


def test_every_layer_has_files() -> None:
    assert {p.relative_to(ROOT).parts[0] for p in FILES} == set(ALLOWED)
