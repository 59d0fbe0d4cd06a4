"""Files that the release of a folder's name wrote are read by this program, and mean the same.

``python tests/reference/small_files.py tests/stored/VERSION`` writes them, at a release and where
a format, a model or a ranker is new.
"""

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import hostile
import numpy as np
import pytest
import small_files
from folders import contents

from letor.errors import InputError
from letor.rankers.registry import get_ranker, ranker_names
from ssi_models.persistence import load_tensors, save_tensors
from ssi_models.registry import load_model

ROOT = Path(__file__).parents[1]
STORED = ROOT / "tests" / "stored"
CASES = sorted(path.relative_to(STORED).as_posix() for path in STORED.glob("*/*"))


def test_every_format_of_ours_is_stored():
    stored = {case.split("/")[1] for case in CASES}
    new = {kind.replace(" ", "-") for kind in small_files.OURS} - stored
    assert not new, "run: python tests/reference/small_files.py tests/stored/VERSION"


def test_every_ranker_of_ours_is_among_them():
    ours = {n for n in ranker_names() if get_ranker(n).__module__.startswith("letor.")}
    assert ours == set(small_files.RANKERS), "give quick parameters in small_files.RANKERS"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
def test_a_clone_on_windows_has_the_same_bytes(tmp_path):
    """Although Git makes other line ends there."""
    named = [f"tests/stored/{case}" for case in CASES if "ranker" in case]
    listed = subprocess.check_output(["git", "ls-files", *named], cwd=ROOT, text=True).split()
    out = ("-c", "core.autocrlf=true", "checkout-index", f"--prefix={tmp_path}/")
    subprocess.run(["git", *out, "--", *listed], cwd=ROOT, check=True)
    assert [(ROOT / name).read_bytes() for name in listed] == [
        (tmp_path / name).read_bytes() for name in listed
    ]


@pytest.mark.parametrize("case", CASES)
def test_a_stored_file_is_read(case, tmp_path):
    kind = next(k for k in small_files.OURS if k.replace(" ", "-") == case.split("/")[1])
    for header in (STORED / case).rglob("index.json"):
        if f'"{unicodedata.unidata_version}"' not in header.read_text():
            pytest.skip("an index is read by Pythons of the same version of Unicode")
    shutil.copytree(STORED / case, tmp_path / "copy")
    hostile.READERS[kind](tmp_path / "copy")
    scores = small_files.scores_of(kind, tmp_path / "copy")
    if scores is not None:
        # Another processor may round differently.
        expected = np.load(STORED / case / "scores.npy")
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in small_files.OURS if "model " not in kind])
def test_lines_end_alike_on_every_system(kind, tmp_path, windows_line_ends):
    for name, content in contents(small_files.make(kind, tmp_path / "made")).items():
        assert b"\0" in content or b"\r\n" not in content, name


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        ("ranker rankboost", "ranker/ranker.json"),
        ("pipeline", "pipeline/features/features.json"),
        ("workspace", "workspace/workspace.json"),
        ("index", "index/index.json"),
        ("knowledge base", "kb/knowledge.json"),
    ],
)
def test_formats_of_a_later_version_are_refused(kind, header, tmp_path):
    path = small_files.make(kind, tmp_path / "made") / header
    path.write_text(re.sub(r'version": (\d)', r'version": 9\1', path.read_text(), count=1))
    with pytest.raises(InputError, match=r"made/.*version.*(update|again)"):
        hostile.READERS[kind](tmp_path / "made")


def test_models_of_a_later_version_are_refused(tmp_path):
    path = small_files.make("model lsa", tmp_path / "lsa") / "model.safetensors"
    header, tensors = load_tensors(path)
    save_tensors(path, header | {"version": 9}, tensors)
    with pytest.raises(ValueError, match="newer version"):
        load_model(path)
