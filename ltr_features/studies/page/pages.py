"""Self-contained HTML pages from the package's templates."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from letor.files import atomic_path


def environment() -> Environment:
    """The templates; a name that a template does not get is an error."""
    return Environment(
        loader=PackageLoader("ltr_features.studies.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def template_text(name: str) -> str:
    """The text of a file among the templates."""
    return (resources.files("ltr_features.studies.page") / "templates" / name).read_text("utf-8")


def render(template: str, **values: Any) -> str:
    """A page; the style sheet is among its values. The same values give the same text."""
    style = Markup(template_text("style.css"))
    return environment().get_template(template).render(style=style, **values)


def write(content: str, path: Path) -> None:
    """Write a page in one step."""
    with atomic_path(path) as partial:
        partial.write_text(content, encoding="utf-8", newline="\n")
