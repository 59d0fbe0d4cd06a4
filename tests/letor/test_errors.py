"""The border of the program: what becomes of errors while a file is read."""

import pytest

from letor.errors import InputError, naming, reading
from letor.files import read_json


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyError("x"), "^a.txt: KeyError: 'x'; it is damaged$"),
        (OSError(2, "No such file"), "^a.txt: No such file; it is damaged$"),
        (InputError("line 3 is bad"), "^a.txt: line 3 is bad$"),
        (InputError("a.txt, line 3"), "^a.txt, line 3$"),
        (MemoryError(), "^a.txt: needs more memory than is available$"),
    ],
)
def test_what_a_file_leads_to_names_it(error, message):
    with pytest.raises(InputError, match=message), reading("a.txt"):
        raise error


def test_of_a_folder_the_file_is_named(tmp_path):
    missing = pytest.raises(InputError, match=r"/b\.json: No such file or directory; it is dam")
    with missing, reading(tmp_path):
        read_json(tmp_path / "b.json")
    (tmp_path / "b.json").write_text('{"a": ')
    cut = pytest.raises(InputError, match=r"b\.json is not JSON in UTF-8: .* line 1 .*; it is dam")
    with cut, reading(tmp_path):
        read_json(tmp_path / "b.json")


def test_a_missing_module_is_no_fault_of_the_file():
    with pytest.raises(ImportError), reading("a.txt"):
        raise ModuleNotFoundError("No module named 'x'")


@pytest.mark.parametrize(
    ("error", "notes"), [(KeyError("x"), ["in family 'f'"]), (InputError(), [])]
)
def test_errors_of_a_plug_in_name_it(error, notes):
    with pytest.raises(type(error)) as raised, naming("family 'f'"):
        raise error
    assert getattr(raised.value, "__notes__", []) == notes
