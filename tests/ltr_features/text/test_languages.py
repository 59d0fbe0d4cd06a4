"""Languages other than English, from the command line to the columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from toys import done, refused, run

from letor.column_names import read_rows
from ltr_features.columns.context import open_workspace

JAPANESE = {"d1": "東京都庁に行く", "d2": "京都の寺を見る", "d3": "ﾒﾓﾘを選ぶ", "d4": "本を読む"}


@pytest.fixture
def japanese(tmp_path: Path) -> Path:
    """Three queries without spaces, each a part of one document."""
    (tmp_path / "qrels").mkdir()
    queries = {"q1": "都庁に", "q2": "京都の寺", "q3": "メモリ"}
    for name, texts in (("corpus", JAPANESE), ("queries", queries)):
        lines = [json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in texts.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    judged = "".join(f"q{i}\td{i}\t1\n" for i in (1, 2, 3))
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return tmp_path


def test_chinese_and_japanese_are_searched_by_pairs_of_characters(japanese: Path) -> None:
    index = ("index", "beir", f"folder={japanese}", "--out", japanese / "w")
    build = ("columns", "build", "--workspace", japanese / "w", "--family", "letor46")
    done(*index)
    assert "by pairs of characters (index --cjk-bigrams)" in refused(
        *build, "--out", japanese / "rows.txt"
    )
    unsegmented = run(*build, "--candidates", "judged", "--out", japanese / "judged.txt")
    assert "by pairs of characters (index --cjk-bigrams)" in unsegmented.stderr
    done(*index, "--cjk-bigrams")
    done(*build, "--out", japanese / "rows.txt")
    rows = read_rows(japanese / "rows.txt")
    assert rows.document_ids.tolist() == ["d1", "d2", "d1", "d3"]  # which has 京都, too
    assert rows.column("tf_body").tolist() == [2, 3, 1, 2]


def test_stop_words_come_from_a_file(japanese: Path) -> None:
    (japanese / "stop.txt").write_text("東京都庁に行く | d1\n本を読む\n")
    done("index", "beir", f"folder={japanese}", "--stopwords", japanese / "stop.txt",
         "--out", japanese / "w")  # fmt: skip
    index = open_workspace(japanese / "w").index
    assert index.vocabulary.words == ("メモリを選ぶ", "京都の寺を見る")
