"""The code of other packages, by which their outputs are known."""

import sys
from functools import lru_cache, partial
from importlib import import_module, invalidate_caches
from zipfile import ZipFile

import pytest

from ltr_base.source_code import code_of_others, packages_of

MODULE = """
from abc import ABC
from functools import lru_cache, partial

class Kind(ABC):
    @classmethod
    def read(cls): ...
    def __call__(self): ...

def read(folder=""): ...

called, cached, given = Kind(), lru_cache(read), partial(read, folder="there")
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "their_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("their_package", "their_package.module"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


def test_any_file_of_a_package_may_count_but_not_what_python_makes_of_it(package):
    kind = import_module("their_package.module").Kind
    known = code_of_others(kind)
    for name in ("__pycache__/x.pyc", ".hidden"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text("x")
        assert code_of_others(kind) == known
    for name in ("words.json", "compiled.so", "data/x.npz"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text("x")
        assert code_of_others(kind) != known, name
        known = code_of_others(kind)


@pytest.mark.parametrize("name", ["their_module", "their_package"])
def test_the_archive_of_a_package_is_its_code(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "archive.zip")
    known = set()
    for line in ("", "# edited"):
        with ZipFile(tmp_path / "archive.zip", "w") as archive:
            archive.writestr("their_module.py", MODULE + line)
            archive.writestr("their_package/__init__.py", MODULE + line)
        invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        known.add(code_of_others(import_module(name).Kind))
    assert len(known) == 2


@pytest.mark.parametrize("name", ["Kind", "read", "called", "cached", "given", "Kind.read"])
def test_whatever_can_be_called_is_of_the_package_that_defines_it(package, name):
    found = import_module("their_package.module")
    for part in name.split("."):
        found = getattr(found, part)
    assert packages_of(found) == ("their_package",)


def test_what_is_ours_has_no_code_of_others():
    for ours in (code_of_others, partial(code_of_others), lru_cache(code_of_others)):
        assert packages_of(ours) == ()
        assert code_of_others(ours) == ""
