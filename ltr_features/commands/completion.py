"""Shell completion: names from the registries, looked up when the shell asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path


def _completing(registry: str, attribute: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        found = getattr(import_module(registry), attribute)
        names: Iterable[str] = found() if callable(found) else found
        return [name for name in names if name.startswith(incomplete)]

    return complete


rankers = _completing("letor.rankers.registry", "ranker_names")
families = _completing("ltr_features.columns.registry", "family_names")
models = _completing("ssi_models.registry", "MODELS")
sources = _completing("ltr_features.sources.registry", "sources")
click_models = _completing("ltr_features.clicks.models", "click_models")
_installed_experiments = _completing("ltr_features.studies.run", "experiment_names")


def experiments(incomplete: str) -> list[str]:
    """Names of installed experiments, TOML files, and folders that may hold some."""
    here = sorted(Path().glob(f"{incomplete}*")) if not Path(incomplete).is_absolute() else []
    files = [str(path) for path in here if path.suffix == ".toml"]
    folders = [f"{path}/" for path in here if path.is_dir()]
    return [*_installed_experiments(incomplete), *files, *folders]
