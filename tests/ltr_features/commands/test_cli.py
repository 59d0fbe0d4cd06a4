"""The command line as a stranger uses it: in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from dumps import topical_dump

from letor.errors import InputError, naming
from letor.files import LOCKED
from ltr_features import cli
from ltr_features.remarks import ColumnWarning

COMMAND = [sys.executable, "-m", "ltr_features.cli"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


def test_help_names_every_command():
    result = run("--help")
    assert result.returncode == 0
    for command in ("demo", "measure", "validate", "columns", "--debug"):
        assert command in result.stdout


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "ltr_features", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == run("--version").stdout


def test_terminals_obey_nothing_in_a_file(tmp_path):
    """A text that clears the screen and names the window, in an error and in a warning."""
    path, text, shown = tmp_path / "rows", "\x1b[2J\x1b]0;x\x07", r"\x1b[2J\x1b]0;x\x07"
    path.write_text(f"1 qid:1 1:{text} 2:1\n")
    said = run("measure", path, "--column", 1).stderr
    assert shown in said
    assert text not in said
    warning = cli._warning_text(ColumnWarning(f"caf\xe9: {text}\x9b1m"), ColumnWarning, "", 1)
    assert warning == f"caf\xe9: {shown}\\x9b1m\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html><body>Not a dump</body></html>", "dump.xml"),
        (topical_dump(4, 3)[:900], "dump.xml"),
        (topical_dump(3, 1), "none of the 3 articles has a section of 40 words for a document"),
        (None, "dump.xml"),
    ],
    ids=["html", "truncated", "empty collection", "missing"],
)
def test_bad_dumps_give_one_line_and_code_2(tmp_path, content, message):
    dump = tmp_path / "dump.xml"
    if content is not None:
        dump.write_bytes(content)
    result = run("demo", "--dump", dump, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("ltr-features: ")
    assert message in result.stderr
    assert {p.name for p in (tmp_path / "out").iterdir()} <= {LOCKED}


def test_debug_shows_the_traceback(tmp_path):
    result = run("demo", "--debug", "--dump", tmp_path / "no.xml", "--out", tmp_path / "out")
    assert result.returncode != 0
    assert "Traceback" in result.stderr


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--out", tmp_path / "file" / "out")
    assert result.returncode == 2
    assert "cannot write there" in result.stderr


def test_foreign_outputs_are_refused_before_work_starts(tmp_path):
    dump = tmp_path / "dump.xml"
    dump.write_bytes(topical_dump(4, 3))
    (tmp_path / "out" / "report").mkdir(parents=True)
    (tmp_path / "out" / "report" / "mine.txt").write_text("precious")
    result = run("demo", "--dump", dump, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert "was not made by this program" in result.stderr
    left = {p.name for p in (tmp_path / "out").rglob("*")}
    assert left - {LOCKED} == {"report", "mine.txt"}


def test_wrong_options_are_named():
    result = run("demo", "--sed", "1")
    assert result.returncode == 2
    assert "--sed" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "x", "--port", "99999"], "99999"),
        (["serve", "x", "--threads", "two"], "'two'"),
        (["pipeline", "add", "x", "y", "--on-other-text", "fist"], "'fist' is not"),
    ],
)
def test_a_value_of_an_option_is_refused_in_plain_words(arguments, said):
    """Versions of typer differ in the words; some hand on those of a library that checks values."""
    told = run(*arguments)
    assert told.returncode == 2
    assert re.match(rf"ltr-features: Invalid value for '{arguments[-2]}': .*{said}", told.stderr)
    assert not re.search("Input should|Value error|parse", told.stderr)


def test_a_word_that_begins_with_a_dash_is_told_from_an_option():
    told = run("explain", "model.safetensors", "-Wall").stderr
    assert "No such option" in told  # versions of click quote it differently
    assert "-W" in told
    assert "if it is a value, write -- before it" in told
    assert "write --" not in run("measure", "rows.txt", "-Wall").stderr


def test_an_option_that_takes_one_value_is_refused_twice():
    result = run("measure", "a.txt", "--cutoff", 5, "--scores", "b", "--cutoff=10")
    assert result.returncode == 2
    assert "--cutoff is given 2 times; it takes one value" in result.stderr
    listed = run("compare", "a", "b", "--measure", "NDCG@10", "--measure", "MAP")
    assert "a: no such file" in listed.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_130_and_leaves_no_half_output(tmp_path, number):
    dump, out, scratch = tmp_path / "dump.xml", tmp_path / "out", tmp_path / "scratch"
    dump.write_bytes(topical_dump(60, 8))
    scratch.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "demo", "--dump", str(dump), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
        # A shell that runs the tests in the background has Ctrl-C ignored; children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not (out / "index").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    try:
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert stdout == ""
    assert stderr.startswith("ltr-features: interrupted; the same command again starts anew, or")
    assert len(stderr.splitlines()) == 1
    partial = [p for p in out.rglob("*") if p.name.endswith((".partial", ".old"))]
    assert partial == []
    assert list(scratch.iterdir()) == []
    assert not (out / "report").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no names of bytes")
def test_names_that_are_not_utf8_are_told():
    """Arrow reads no such file; it is neither damaged nor absent."""
    result = run("validate", os.fsdecode(b"tr\xe4in.txt"))
    assert result.returncode == 2
    assert "'tr\\udce4in.txt' is not UTF-8, as names of files must be; rename it\n" in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="file names are UTF-8 in any locale elsewhere")
def test_a_locale_that_is_not_utf8_is_told(monkeypatch):
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0")):
        monkeypatch.setenv(name, value)
    assert "rename it, or set PYTHONUTF8=1 if it is" in run("validate", "träin.txt").stderr


def test_ctrl_c_within_compiled_code_is_ctrl_c_too(monkeypatch, capsys):
    """Which comes out of numba as a SystemError, whose cause it is."""

    def interrupted(*_, **__):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr(cli, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert "interrupted" in capsys.readouterr().err

    def broken(*_, **__):
        raise SystemError("something else")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemError, match="something else"):
        cli.main()


LETOR = """\
2 qid:1 1:0.9 2:0.1 #docid = a
0 qid:1 1:0.5 2:0.2 #docid = b
1 qid:1 1:0.1 2:0.3 #docid = c
0 qid:2 1:0.3 2:0.1 #docid = d
"""


@pytest.fixture
def letor(tmp_path) -> Path:
    path = tmp_path / "data.txt"
    path.write_text(LETOR)
    return path


def test_measure_shows_all_definitions_of_one_ranking(letor, tmp_path):
    by_column = run("measure", letor, "--column", 1)
    assert by_column.returncode == 0, by_column.stderr
    # Query 1: gains 3, 0, 1 at ranks 1, 2, 3; ideal 3, 1. Query 2 has nothing relevant.
    value = (3 + 1 / 2) / (3 + 1 / 1.5849625007)
    assert f"{value / 2:.4f}" in by_column.stdout
    assert f"{(value + 1) / 2:.4f}" in by_column.stdout
    scores = tmp_path / "scores.txt"
    scores.write_text("1 0 0.9\n1 1 0.5\n1 2 0.1\n2 0 0.3\n")
    assert run("measure", letor, "--scores", scores).stdout == by_column.stdout
    missing = run("measure", letor, "--scores", tmp_path / "absent")
    assert missing.returncode == 2
    assert f"{tmp_path / 'absent'}: no such file" in missing.stderr
    scores.write_text("0.9\nhigh\n")
    bad = run("measure", letor, "--scores", scores)
    assert bad.returncode == 2
    assert "scores.txt, line 2: 'high' is not a finite number" in bad.stderr
    scores.write_text("[" + "0.25," * 500 + "0.5]")
    long = run("measure", letor, "--scores", scores).stderr
    assert "line 1: '[0.25," in long
    assert len(long) < len(str(scores)) + 200
    absent = tmp_path / "rows.parquet"
    assert f"{absent}: no such file" in run("measure", absent, "--column", 1).stderr
    absent.mkdir()
    assert f"{absent}: a folder" in run("measure", absent, "--column", 1).stderr


def test_measure_tells_of_labels_between_grades(letor):
    assert run("measure", letor, "--column", 1).stderr == ""
    letor.write_text("0.75 qid:1 1:3\n0 qid:1 1:2\n0.5 qid:1 1:1\n")
    measured = run("measure", letor, "--column", 1)
    told = f"{letor}: labels that are not whole numbers: 2 of 3, such as 0.75: gains of NDCG are"
    assert told in measured.stderr
    high, low = 2**0.75 - 1, 2**0.5 - 1
    value = (high + low / 2) / (high + low / np.log2(3))
    assert f"RankLib, ranx ndcg_burges       {value:.4f}" in measured.stdout


@pytest.mark.parametrize(("encoding", "rule"), [("ascii", "\u2500"), ("cp1252", "--")])
def test_a_terminal_without_the_characters_of_tables_gets_the_answer(tmp_path, encoding, rule):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
    for name, best in (("x.run", "a"), ("y.run", "b")):
        (tmp_path / name).write_text(f"1 Q0 {best} 1 2.0 x\n")
    asked = ["compare", "x.run", "y.run", "--qrels", "qrels", "--permutations", "50", "--out", "o"]
    result = subprocess.run(
        [*COMMAND, *asked], capture_output=True, timeout=120, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0",
             "PYTHONWARNDEFAULTENCODING": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    ours = rb"[\\/](letor|ltr_\w+|ssi_models)[\\/][^\n]*: EncodingWarning"
    assert not re.search(ours, result.stderr), "a file is opened in the terminal's encoding"
    shown = result.stdout.decode("utf-8")
    assert rule in shown
    assert f"\n{'▲/▼' if encoding == 'ascii' else '+/-'} significantly better/worse" in shown


def test_measure_remarks_on_scores_and_names_a_column_out_of_range(letor, tmp_path):
    by_rank = tmp_path / "a.run"
    by_rank.write_text("".join(f"1 Q0 {d} {i} {i} t\n" for i, d in enumerate("abc", start=1)))
    remark = f"{by_rank}: scores order 1 of 1 query (100%) the other way than the rank column"
    assert remark in run("measure", letor, "--scores", by_rank).stderr
    scores = tmp_path / "scores.txt"
    scores.write_text("1\n1\n1\n1\n")
    assert "all scores of a query are equal" in run("measure", letor, "--scores", scores).stderr
    unknown = run("measure", letor, "--column", 0).stderr
    assert "data.txt has 2 columns, and no column '0'; there are 1, 2" in unknown


def test_warnings_are_lines(letor):
    letor.with_name("data.columns.json").write_text('[{"name": "a"}, {"name": "b"}, {"name": "c"}]')
    by_name = run("measure", letor, "--column", "a")
    assert by_name.stdout == run("measure", letor, "--column", 1).stdout
    said = by_name.stderr.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"{letor.with_name('data.columns.json')} names 3 columns, the rows")
    # A former name, a remark of a column, and another's, which keeps its place.
    said = run("models", "list", "tfidf").stderr
    assert said == "model 'tfidf' is now 'vsm'\n"
    assert cli._warning_text("few", ColumnWarning, "a.py", 7) == "few\n"
    assert "a.py:7: FutureWarning: few" in cli._warning_text("few", FutureWarning, "a.py", 7)


def test_validate_finds_and_exits(letor):
    good = run("validate", letor)
    assert good.returncode == 0
    assert "4 rows, 2 queries, 2 columns" in good.stdout
    letor.write_text(LETOR + "1 qid:3 1:x\n")
    bad = run("validate", letor)
    assert bad.returncode == 2
    assert "5" in bad.stdout


def test_columns_list_has_the_46():
    result = run("columns", "list", "letor46")
    assert result.returncode == 0
    assert "lmir_dir_whole" in result.stdout
    assert "child_pages" in result.stdout
    assert run("columns", "list", "letor47").returncode == 2


def test_what_an_error_holds_is_closed_before_the_program_ends(monkeypatch):
    """A reader of Arrow that is left half-way may keep the program from ending."""
    closed, said = [], []

    def half_read():
        try:
            yield 1
        finally:
            closed.append(True)

    def app(*_, **__):
        rows = half_read()
        next(rows)
        raise InputError("a row is wrong")

    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(cli, "_fail", lambda *what: said.append((what, list(closed))))
    with pytest.raises(SystemExit):
        cli.main()
    assert said == [(("a row is wrong", 2), [True])]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit address space")
def test_too_little_address_space_is_told(tmp_path):
    program = (
        "import resource; from ltr_features.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))\n"
        "main()"
    )
    command = [sys.executable, "-c", program, "sample", str(tmp_path / "sample")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "ltr-features: the limit of the address space (ulimit -v) is 0.56"
    )


@pytest.mark.parametrize("error", [KeyError("title"), ValueError("title"), OSError(2, "title")])
def test_errors_of_a_plug_in_are_a_line_that_names_it(error, monkeypatch, capsys):
    def fails(*_, **__):
        with naming("source 'mine'"):
            raise error

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    said = capsys.readouterr().err
    assert said.startswith("ltr-features: in source 'mine': ")
    assert said.endswith("title (--debug shows where)\n") or "KeyError: 'title' (--debug" in said


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_too_little_memory_is_one_line(error, monkeypatch, capsys):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err.startswith(
        "ltr-features: there is too little memory, or no room"
    )


def test_an_error_of_a_file_names_it_also_within_a_model(monkeypatch, capsys):
    def app(*_, **__):
        with naming("model 'ssi'"):
            raise OSError(28, "No space left on device", "/tmp/x/ssi.checkpoint")

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit):
        cli.main()
    said = "in model 'ssi': /tmp/x/ssi.checkpoint: No space left on device"
    assert capsys.readouterr().err.startswith(f"ltr-features: {said}")
