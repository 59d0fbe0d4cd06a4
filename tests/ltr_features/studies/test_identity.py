"""Files are known by their content, whatever their paths, and digests of large files are kept."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from small_experiment import judged, spoil

from ltr_features.studies import identity
from ltr_features.studies.identity import Digests, files_within
from ltr_features.studies.kinds.compare import CompareConfig, CompareStudy
from ltr_features.studies.stages import DIGESTS
from ltr_features.studies.statistics.significance import TestSettings


def test_a_comparison_knows_its_runs_and_judgements_by_content(here):
    lines = [f"{q} Q0 {d} 1 {2.5 if n % 3 else 1.5} t\n" for n, (q, d) in enumerate(judged())]
    for name in ("one.run", "two.run"):
        (here / name).write_text("".join(lines))
    (here / "qrels").write_text("".join(f"{q} 0 {d} 1\n" for q, d in judged()))
    manifest = here / "out" / "report" / "manifest.json"

    def compared() -> list[str]:
        runs = Path("one.run"), Path("two.run")
        test = TestSettings(n_permutations=50, n_resamples=50)
        config = CompareConfig(runs=runs, qrels=Path("qrels"), test=test)
        CompareStudy(config, Path("out")).run()
        listed = files_within(json.loads(manifest.read_text())["inputs"]["files"])
        return [file["sha256"] for _, file in listed]

    files = [here / name for name in ("one.run", "two.run", "qrels")]
    assert compared() == [sha256(file.read_bytes()).hexdigest() for file in files]
    written = manifest.stat().st_mtime_ns
    compared()
    assert manifest.stat().st_mtime_ns == written
    for path, changed in ((files[1], "".join(lines[:-1])), (files[2], "q0 0 d0 1\n")):
        path.write_text(changed)
        assert sha256(path.read_bytes()).hexdigest() in compared()


def test_digests_of_large_files_are_kept_and_content_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "LARGE", 4)
    read = []
    digest = identity.hashlib.file_digest
    monkeypatch.setattr(
        identity.hashlib, "file_digest", lambda f, a: (read.append(1), digest(f, a))[1]
    )
    path, kept = tmp_path / "x", tmp_path / DIGESTS
    path.write_bytes(b"content")

    def asked() -> str:
        digests = Digests(kept)
        found = digests.sha256(path)
        digests.save()
        return found

    assert asked() == sha256(b"content").hexdigest()
    assert not kept.exists()  # just written: what is written next may have the same times
    monkeypatch.setattr(identity, "_REST", -1)
    asked()
    assert len(read) == 2
    asked()
    assert len(read) == 2  # by the file of digests
    spoil(path)
    assert asked() == sha256(path.read_bytes()).hexdigest()
    kept.write_text("{")
    assert asked() == sha256(path.read_bytes()).hexdigest()
