"""Languages other than English, from the command line to the columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from beir_folders import with_ids, write_beir
from toys import done, refused, run

from letor.column_names import read_rows
from ltr_features.columns.context import ColumnContext, open_workspace
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection, Judgements

JAPANESE = {"d1": "東京都庁に行く", "d2": "京都の寺を見る", "d3": "ﾒﾓﾘを選ぶ", "d4": "本を読む"}


@pytest.fixture
def japanese(tmp_path: Path) -> Path:
    """Three queries without spaces, each a part of one document."""
    queries = {"q1": "都庁に", "q2": "京都の寺", "q3": "メモリ"}
    judged = "".join(f"q{i}\td{i}\t1\n" for i in (1, 2, 3))
    return write_beir(tmp_path, with_ids(JAPANESE), with_ids(queries), test=judged)


def test_chinese_and_japanese_are_searched_by_pairs_of_characters(japanese: Path) -> None:
    index = ("index", "beir", f"folder={japanese}", "--out", japanese / "w")
    build = ("columns", "build", "--workspace", japanese / "w", "--family", "letor46")
    assert "by pairs of characters (index --cjk-bigrams)" in run(*index).stderr
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


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("USB USB USB ต้องระบุค่านี้ ไม่พบข้อมูล ค่านี้ไม่ถูกต้อง กรุณาลองใหม่", "as candidates the model vsm"),
        ("USB USB USB 東京都 京都府 大阪府 北海道", "by pairs of characters"),
        ("USB USB USB 東京都", "if they are other spellings, compare letters: --family"),
    ],
)  # fmt: skip
def test_the_advice_is_for_the_script_of_most_unknown_words(query: str, advice: str) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    collection = Collection(
        name="c", document_ids=["d"], fields={"body": ["ข้อมูล 都"]}, query_ids=["q"],
        query_texts=[query], judgements=Judgements(nothing, nothing, nothing),
    )  # fmt: skip
    (remark,) = ColumnContext.of(collection).unknown_words
    assert remark.startswith("100 % of the words in queries occur in no document (most often usb, ")
    assert advice in remark


@pytest.mark.parametrize(("stemmer", "advised"), [(None, True), ("english", False)])
def test_a_stemmer_is_advised_unless_there_is_one(stemmer, advised):
    context = ColumnContext.of(asked(["canoe"]), Analyzer(stemmer=stemmer))
    (remark,) = context.unknown_words
    assert ("if they are other forms, take a stemmer (index --stemmer);" in remark) is advised
    assert "if they are other spellings, compare letters: --family letters" in remark


def asked(texts: list[str]) -> Collection:
    nothing = np.zeros(0, dtype=np.int64)
    return Collection(
        name="c", document_ids=["d"], fields={"body": ["pipe 2x4 size 10"]},
        query_ids=[str(n) for n in range(len(texts))], query_texts=texts,
        judgements=Judgements(nothing, nothing, nothing),
    )  # fmt: skip


@pytest.mark.parametrize(("text", "lost"), [("pipe 1/2 in", "1, 2"), ("coat S (H&M)", "h, m, s")])
def test_letters_and_digits_of_queries_that_are_no_words_are_told(text: str, lost: str) -> None:
    """A size of 1/2 would be that of 3/4, in silence."""
    texts = [text, *(f"a 2x4 I'd size 10 m{n} word3 東 (e.g. U.S.)" for n in range(19))]
    (remark,) = ColumnContext.of(asked(texts)).short_words
    assert remark.startswith(
        "5 % of the queries have letters or digits that are too short for words (most often "
        f"{lost}), so that"
    )
    assert ColumnContext.of(asked(texts), Analyzer(min_length=1)).short_words == []
    assert ColumnContext.of(asked(texts[1:])).short_words == []
    long = " ".join(f"word{n}" for n in range(60))  # some stand in every long text
    assert ColumnContext.of(asked([f"{t} {long}" for t in texts])).short_words == []


def test_queries_without_a_word_are_told() -> None:
    texts = ["C++", "???", *(f"size 10 m{n}" for n in range(98))]
    (remark,) = ColumnContext.of(asked(texts)).without_words
    assert remark.startswith("2 of 100 queries have no word (such as 'C++', '???'), so that")
    assert remark.endswith("; keep single letters and digits by index --min-length 1")
    context = ColumnContext.of(asked(texts), Analyzer(min_length=1))
    assert context.without_words == [
        "1 of 100 queries have no word (such as '???'), so that BM25 finds no candidate and no "
        "column of words knows them"
    ]
    assert context.without_words[0] in context.remarks


def test_stop_words_come_from_a_file(japanese: Path) -> None:
    (japanese / "stop.txt").write_text("東京都庁に行く | d1\n本を読む\n")
    done("index", "beir", f"folder={japanese}", "--stopwords", japanese / "stop.txt",
         "--out", japanese / "w")  # fmt: skip
    index = open_workspace(japanese / "w").index
    assert index.vocabulary.words == ("メモリを選ぶ", "京都の寺を見る")
