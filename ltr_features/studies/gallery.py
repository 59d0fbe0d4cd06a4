"""A gallery of the findings of finished experiments, small enough to keep with the code.

Each experiment gets a folder with its summary, tables of means and tests, and two charts; an index
shows them all. Nothing in it is per query or document, since the texts and ids of research
collections may not be redistributed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from letor.errors import InputError
from letor.files import atomic_path, read_json
from ltr_base.names import repeated
from ltr_features.studies.progress import REPORT, TIMES
from ltr_features.studies.run import experiment_names
from ltr_features.studies.study import MANIFEST

#: Name of the page that code hosts display for a folder.
INDEX = "README.md"
#: Names that a study's summary may have, and its tables of means and tests.
SUMMARIES = ("summary.txt", "tables.txt")
TABLES = (
    "means", "comparisons", "hard_queries", "query_classes", "column_value", "rows", "errors",
)  # fmt: skip
#: Commands that are not ``run``, by the names of their folders.
DEMOS = {"demo": "demo", "demo_full": "demo --full"}
#: A link from the index to an exhibit.
_LINK = re.compile(rf"\]\(([^()/]+)/{re.escape(INDEX)}\)$", re.M)
_HEAD = """# What the columns are worth

Question, answer and main chart of each experiment; its folder has the tests and tables. Written by
`ltr-features gallery`.
"""


@dataclass(frozen=True)
class Exhibit:
    """A finished experiment.

    Attributes:
        name: of its folder. report: the folder of its report. seconds: total duration of its
            stages on the machine where they ran; None if unknown.
    """

    name: str
    report: Path
    manifest: dict[str, Any]
    seconds: float | None

    @classmethod
    def read(cls, folder: Path) -> Exhibit:
        """Read an output folder of ``ltr-features run`` or ``demo``.

        Raises:
            InputError: the folder has no finished report.
        """
        report, times = folder / REPORT, folder / TIMES
        try:
            manifest = read_json(report / MANIFEST)
            manifest["title"], manifest["verdict"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{folder}: has no finished report of this version; run the experiment into it"
            ) from None
        seconds = None
        if times.is_file():
            seconds = sum(stage["seconds"] for stage in read_json(times).values())
        return cls(folder.resolve().name, report, manifest, seconds)

    @property
    def command(self) -> str:
        """The command that runs the experiment."""
        if self.name in DEMOS:
            return f"ltr-features {DEMOS[self.name]} --out {self.name}"
        name = shlex.quote(self.name)
        experiment = name if name in experiment_names() else shlex.quote(f"{self.name}.toml")
        return f"ltr-features run {experiment} --data FOLDER --out {name}"

    @property
    def charts(self) -> list[Path]:
        """The overview, and a chart of hard queries or else the first other chart."""
        folder = self.report / "figures"
        charts = (p for p in folder.glob("*.svg") if not p.stem.endswith("-map"))  # these show text
        others = sorted(charts, key=lambda p: ("hard-queries" not in p.name, p.name))
        return [folder / "overview.svg", *(p for p in others if p.name != "overview.svg")][:2]

    def write(self, folder: Path) -> None:
        """Write the exhibit into a new folder."""
        folder.mkdir()
        [summary] = [path for name in SUMMARIES if (path := self.report / name).is_file()]
        for chart in self.charts:
            shutil.copyfile(chart, folder / chart.name)
        for name in TABLES:
            for table in (self.report / f"{name}.csv", self.report / "tables" / f"{name}.csv"):
                if table.is_file():
                    shutil.copyfile(table, folder / table.name)
        title = _as_text(self.manifest["title"])
        shown = "\n".join(f"![{title}]({chart.name})\n" for chart in self.charts)
        text = summary.read_text(encoding="utf-8")
        page = f"{self._head}\n{shown}\n```text\n{text}```\n"
        (folder / INDEX).write_text(page, encoding="utf-8", newline="\n")

    @property
    def _head(self) -> str:
        """Title, verdict and command, which the index shows too."""
        manifest, took = self.manifest, ""
        if self.seconds is not None:
            minutes = max(self.seconds / 60, 1)
            took = f" ({minutes:.0f} min on {manifest['machine']['cores']} cores)"
        title, verdict = _as_text(manifest["title"]), _as_text(manifest["verdict"])
        answer = f"**{verdict}**\n\n" if verdict else ""
        return f"# {title}\n\n{answer}`{self.command}`{took}\n"


def _as_text(text: str) -> str:
    """Markdown that shows the text, with names such as "a<b>" and "*x*" in it, as it is."""
    return re.sub(r"([\\`*_\[\]])", r"\\\1", escape(text, quote=False))


def write_gallery(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> list[str]:
    """Write a gallery, or add exhibits to an existing one. Exhibits with other names stay, unless
    somebody has deleted their folders.

    Args:
        folders: output folders of finished experiments; exhibits are named after them. Existing
            exhibits keep their place in the index; new ones come first.
        out: the gallery's folder; its README.md is the index.

    Returns:
        The names of all exhibits, in the order of the index.

    Raises:
        InputError: a folder has no finished report, two have the same name, or ``out`` holds
            something other than a gallery.
    """
    target, exhibits = Path(out), [Exhibit.read(Path(folder)) for folder in folders]
    names = [exhibit.name for exhibit in exhibits]
    if twice := repeated(names):
        both = [str(f) for f, name in zip(folders, names, strict=True) if name == twice[0]]
        raise InputError(
            f"{' and '.join(both)} have the same name, {twice[0]!r}, after which an exhibit is "
            "called: rename one of the folders"
        )
    if target.exists() and not _is_gallery(target):
        raise InputError(f"{target}: exists already and is not a gallery; name another folder")
    index = target / INDEX
    links = _LINK.findall(index.read_text(encoding="utf-8")) if index.is_file() else []
    named = map(unquote, links)
    there = [name for name in named if (target / name / INDEX).is_file()]
    new = {exhibit.name: exhibit for exhibit in exhibits}
    order, entries = [*(name for name in names if name not in there), *there], []
    with atomic_path(target, kind="folder") as partial:
        partial.mkdir()
        for name in order:
            if name in new:
                new[name].write(partial / name)
            else:
                shutil.copytree(target / name, partial / name)
            head, _, _ = (partial / name / INDEX).read_text(encoding="utf-8").partition("\n![")
            link = quote(name)  # blanks and parentheses would end it
            chart = f"[![Main chart]({link}/overview.svg)]({link}/{INDEX})"
            entries.append(f"#{head}\n{chart}\n")
        index = partial / INDEX
        index.write_text("\n".join([_HEAD, *entries]), encoding="utf-8", newline="\n")
    return order


def _is_gallery(folder: Path) -> bool:
    """Whether a folder is empty, or was written by :func:`write_gallery`."""
    if not folder.is_dir():
        return False
    index = folder / INDEX
    written = index.is_file() and index.read_text(encoding="utf-8").startswith(_HEAD)
    return written or not any(folder.iterdir())
