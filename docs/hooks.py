"""What the documentation takes from the program itself, ``{{ columns }}`` and the like, and its
equations, which need no script: MathML."""

from __future__ import annotations

import html
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

#: Equations as ``pymdownx.arithmatex`` leaves them.
_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)
#: References of docstrings to other objects.
_REFERENCE = re.compile(r":(?:class|func|meth|attr|mod|data):<code>(?:[\w.~]*\.)?(\w+)</code>")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in what a page has from the program, and keep marks of significance beside numbers;
    called by the documentation's builder."""
    for name, make in TABLES.items():
        mark = "{{ " + name + " }}"
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return re.sub(r"(?<=\d) (?=[▲▼])", "\N{NO-BREAK SPACE}", markdown)


def on_page_content(content: str, **_: object) -> str:
    """Set the equations of a page; called by the documentation's builder."""
    return _EQUATION.sub(_equation, _REFERENCE.sub(r"<code>\1</code>", content))


def _equation(found: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    display = "inline" if found[2] == "(" else "block"
    made = str(convert(html.unescape(found[3]), display=display))
    # A wide one scrolls: by keys, too.
    return made if display == "inline" else made.replace("<math ", '<math tabindex="0" ', 1)


def columns() -> str:
    """Every column of every family."""
    from ltr_features.columns.registry import families, get_family

    parts, stated = [], set()
    for name in families():
        family = get_family(name)
        rules = _rules(family)
        rows = [
            [str(c.letor_id or ""), f"`{c.name}`", _told(c.description, c.unit, c.value_range)]
            for c in family.columns
        ]
        header = ["id", "name", "definition; unit and range"]
        parts.append(f"## {name}\n\n{family.description} ({family.reference}).\n\n")
        parts.append(_table(header, rows) + "\n\n")
        parts.append(rules if rules not in stated else "")  # several families have them in common
        stated.add(rules)
    return "".join(parts)


def _rules(family: Any) -> str:
    """The rules by which a family's module computes its columns: the end of its docstring."""
    _, mark, rules = (inspect.getdoc(inspect.getmodule(family)) or "").partition("Rules (")
    return _plain(mark + rules + "\n\n") if mark else ""


def models() -> str:
    """Every matching model."""
    from ltr_base.docstrings import summary
    from ssi_models.registry import MODELS

    rows = [
        [
            f"`{kind.name}`",
            _told(summary(kind), kind.__name__, f"learns from {kind.learns_from}", kind.inputs),
        ]
        for kind in MODELS.values()
    ]
    return _table(["name", "what it is; class, what it learns from, matrices"], rows)


def rankers() -> str:
    """Every ranker."""
    from letor.rankers.registry import get_ranker, ranker_names
    from ltr_base.docstrings import summary

    rows = [[f"`{name}`", summary(get_ranker(name))] for name in ranker_names()]
    return _table(["name", "what it is"], rows)


def measures() -> str:
    """The definitions in use of the same measures."""
    from letor.measures import conventions

    rows = [[d.name, d.known_as, d.definition] for d in conventions()]
    return _table(["measure", "known as", "definition"], rows)


def family_classes() -> str:
    """Where the class of every column family is described."""
    from ltr_features.columns.registry import families

    return _described(families().values())


def ranker_classes() -> str:
    """Where the class of every ranker is described."""
    from letor.rankers.registry import get_ranker, ranker_names

    return _described(map(get_ranker, ranker_names()))


def model_classes() -> str:
    """Where the class of every matching model is described."""
    from ssi_models.registry import MODELS

    return _described(MODELS.values())


def _described(kinds: Iterable[type]) -> str:
    """The classes without their methods, which are those of the base class."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return "".join(f"::: {name}\n    options: {{ members: false }}\n\n" for name in names)


def experiments() -> str:
    """Every key of every kind of experiment file."""
    from ltr_features.studies.run import study_class, study_kinds

    parts = []
    for kind in study_kinds():
        parts.append(f"## {kind}\n\n")
        parts += _section(study_class(kind).described, "")
    return "".join(parts)


def options() -> str:
    """What a file, or the command line, may say of each source, family, model and ranker."""
    from letor.rankers.registry import get_ranker, ranker_names
    from ltr_features.candidates import KINDS
    from ltr_features.columns.registry import families
    from ltr_features.sources.registry import get_source, sources
    from ssi_models.registry import MODELS

    made: dict[str, dict[str, Callable[..., Any]]] = {
        "Sources: `[collection]`": {name: get_source(name) for name in sources()},
        "Sources of candidates: `[candidates]`": dict(KINDS),
        "Families: `options` of `[[columns]]`": dict(families()),
        "Models: `params` of `[[models]]`": dict(MODELS),
        "Rankers: `params` of `[[rankers]]`": {name: get_ranker(name) for name in ranker_names()},
    }
    parts = []
    for title, kinds in made.items():
        rows = [[f"`{name}`", _parameters(kind)] for name, kind in kinds.items()]
        parts.append(f"### {title}\n\n{_table(['name', 'options and defaults'], rows)}\n\n")
    return "".join(parts)


def _parameters(made: Callable[..., Any]) -> str:
    """Parameters and their defaults; of models with training options, these too."""
    if hasattr(made, "default_params"):
        defaults = made.default_params()
    else:
        signature = inspect.signature(made).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in signature):
            return "those of its parts"
        defaults = {p.name: p.default for p in signature if p.name != "on_progress"}
    needed = inspect.Parameter.empty
    said = [name if v is needed else f"{name} = {_toml(v)}" for name, v in defaults.items()]
    return ", ".join(f"`{one}`" for one in said) or "none"


def _section(kind: Any, place: str) -> Iterator[str]:
    """A section's description and keys, then the sections in it."""
    if place:
        yield f"### `{place}`\n\n"
    heading = "\n\nAttributes:\n"
    yield _plain((inspect.getdoc(kind) or "").partition(heading)[0]) + "\n\n"
    found, meanings = _fields(kind), {}
    for base in reversed(kind.__mro__):  # a section explains the keys that it adds
        attributes = inspect.cleandoc(base.__doc__ or "").partition(heading)[2]
        attributes = attributes.partition("\n\nRaises:\n")[0]
        meanings |= _meanings(attributes, [*found])
    rows, inner = [], []
    for name, (hint, default, limits) in found.items():
        section, form = _inner(hint)
        if section is not None:
            path = form.format(place.strip("[]") + "." * bool(place) + name)
            inner.append((section, path))
        said = _said(hint) if section is None else f"see `{path}`"
        told = _told(meanings.get(name, ""), said + limits, default)
        rows.append([f"`{name}`", told.removeprefix("<br>")])
    yield _table(["key", "meaning; value and default"], rows) + "\n\n"
    for section, path in inner:
        yield from _section(section, path)


def _fields(kind: Any) -> dict[str, tuple[Any, str, str]]:
    """Type, default and limits of each key of a section."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {f.name: (hints[f.name], f"default `{_toml(f.default)}`", "") for f in fields(kind)}
    found = {}
    for name, field in kind.model_fields.items():
        signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "pattern": "matches"}
        limits = [
            f"{sign} {getattr(rule, key)}"
            for rule in field.metadata
            for key, sign in signs.items()
            if getattr(rule, key, None) is not None
        ]
        default = "must be given" if field.is_required() else f"default `{_toml(field.default)}`"
        if field.default is None or _inner(field.annotation)[0] is not None:
            default = "" if not field.is_required() else default
        found[name] = (field.annotation, default, "".join(f", {limit}" for limit in limits))
    return found


def _meanings(attributes: str, names: list[str]) -> dict[str, str]:
    """What an ``Attributes:`` section says of each key."""
    known = "|".join(names)
    text = " ".join(_plain(attributes).split())
    parts = re.split(rf"(?:^|(?<=[.;] ))((?:{known})(?:, (?:{known}))*): ", text)[1:]
    found = zip(parts[::2], parts[1::2], strict=True)
    return {name: meaning.strip() for several, meaning in found for name in several.split(", ")}


def _plain(text: str) -> str:
    """Text without the roles of docstrings."""
    return re.sub(r":[a-z]+:`~?(.+?)`", r"`\1`", text).replace("``", "`")


def _inner(hint: Any) -> tuple[Any, str]:
    """The section that a key holds, and how its heading is written; None if it holds a value."""
    if isinstance(hint, type) and (hasattr(hint, "model_fields") or is_dataclass(hint)):
        return hint, "[{}]"
    found = [_inner(part)[0] for part in get_args(hint)]
    section = next((part for part in found if part is not None), None)
    return section, {dict: "[{}.NAME]", tuple: "[[{}]]", list: "[[{}]]"}.get(
        get_origin(hint), "[{}]"
    )


def _said(hint: Any) -> str:
    """A type in words."""
    origin, parts = get_origin(hint), [p for p in get_args(hint) if p not in (type(None), ...)]
    if origin is Annotated:
        return _said(parts[0])
    if origin is Literal:
        return " or ".join(f"`{_toml(part)}`" for part in parts)
    if origin in (tuple, list):
        return "list of " + " and ".join(_said(part) for part in parts)
    if origin is dict:
        return f"table of {_said(parts[1])}"
    if parts:
        return " or ".join(_said(part) for part in parts)
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "path"}
    return names.get(hint, "anything")


def _toml(value: Any) -> str:
    """A default as a file would write it."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_toml, value))}]"
    if value is None:
        return "none"
    if "factory" in str(value):  # how a dataclass shows the default of a table
        return "{}"
    return json.dumps(value, ensure_ascii=False, default=str)


def _told(text: str, *facts: str) -> str:
    """A cell of two lines, so that a table has few columns and fits a phone."""
    return f"{text}<br><small>{'; '.join(filter(None, facts))}</small>"


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


TABLES: dict[str, Callable[[], str]] = {
    "columns": columns,
    "models": models,
    "rankers": rankers,
    "measures": measures,
    "family classes": family_classes,
    "ranker classes": ranker_classes,
    "model classes": model_classes,
    "experiments": experiments,
    "options": options,
}
