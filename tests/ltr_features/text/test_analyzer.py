import pytest

from letor.errors import InputError
from ltr_features.text.analyzer import Analyzer, english_stopwords, stopwords_named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's MAT, don't!", ["the", "cat", "mat", "don"]),
        ("snake_case x-ray C3PO", ["snake", "case", "ray", "c3po"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("ΣΊΣΥΦΟΣ σίσυφος", ["σίσυφοσ", "σίσυφοσ"]),
        ("İstanbul istanbul", ["istanbul", "istanbul"]),
        ("ＵＳＢ ﬁx ｶﾞｽ ﻻ ｘ²", ["usb", "fix", "ガス", "لا", "x2"]),
        ("ΜΑΪ\u0301ΟΥ μαΐου", ["μαΐου", "μαΐου"]),
        ("a\ufdfa 1½", ["a\ufdfa", "1½"]),  # would become several words
        ("cafe\u0301 café", ["café", "café"]),
        (
            "co\u00adoperate zero\u200bwidth می\u200cخواهم",
            ["cooperate", "zero", "width", "میخواهم"],
        ),
        ("हिन्दी 𝒳𝒴 \U0001f600 2½", ["हिन्दी", "xy", "2½"]),
        ("日本語 テキスト", ["日本語", "テキスト"]),
        ("\ud800lone surrogate", ["lone", "surrogate"]),
        ("a\x00bb", ["bb"]),
        ("", []),
        (" .,; ", []),
    ],
)
def test_the_token_rule(text, expected):
    assert Analyzer().tokens(text) == expected


def test_case_can_be_kept():
    assert Analyzer(lowercase=False).tokens("Straße NATO") == ["Straße", "NATO"]


def test_length_limits_are_in_code_points_and_drop_rather_than_cut():
    analyzer = Analyzer(min_length=3, max_length=4)
    assert analyzer.tokens("ab abc äöü äöüß äöü2 abcde") == ["abc", "äöü", "äöü2"]
    assert Analyzer(min_length=1).tokens("a b") == ["a", "b"]
    assert Analyzer().tokens("赤 a 5 か 책 ab Ａ") == ["赤", "か", "책", "ab"]


def test_marks_alone_are_no_token():
    assert Analyzer(min_length=1).tokens("\u2764\ufe0f \u0301\u0302 a\u0301") == ["á"]


def test_numbers_can_be_dropped():
    text = "1998 half ½½ b2b ４²"
    assert Analyzer(drop_numbers=True).tokens(text) == ["half", "b2b"]
    assert "1998" in Analyzer().tokens(text)


def test_stop_words_are_compared_after_folding_and_before_stemming():
    analyzer = Analyzer(stopwords=("running",), stemmer="english")
    assert analyzer.tokens("RUNNING runs runner") == ["run", "runner"]
    assert Analyzer(stopwords="english").tokens("The cat is on the mat") == ["cat", "mat"]


def test_stop_words_are_folded_as_texts_are():
    stop = ("daß", "FÜR", "u\u0308ber", "ως", "İçin", "ｔｈｅ", "l'été")
    assert Analyzer(stopwords=stop).tokens("Daß dass für Über ΩΣ için the l’été nun") == ["nun"]
    kept = Analyzer(stopwords=("DER",), lowercase=False)
    assert kept.tokens("DER der") == ["der"]


def test_stop_words_are_read_from_lists_as_others_publish_them(tmp_path):
    path = tmp_path / "german.txt"
    path.write_text("\ufeffder | the\n| forms\ndaß und  # and\n\nder\n", encoding="utf-8")
    assert stopwords_named(str(path)) == ("der", "daß", "und")
    assert stopwords_named("english") == "english"
    path.write_text("| nothing\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"german.txt: no stop words"):
        stopwords_named(str(path))
    with pytest.raises(InputError, match=r"no file 'german'; .* english, others are files"):
        stopwords_named("german")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京都庁", ["東京", "京都", "都庁"]),
        ("佐々木、が", ["佐々", "々木", "が"]),
        ("USBメモリ3個", ["usb", "メモ", "モリ", "個"]),
        ("ｶﾞｷﾞ か\u3099き゛", ["ガギ", "がき"]),
        ("한국어 words 𠮷野", ["한국어", "words", "𠮷野"]),
        ("中・日", ["中", "日"]),
    ],
)
def test_chinese_and_japanese_in_pairs_of_characters(text, expected):
    assert Analyzer(cjk_bigrams=True).tokens(text) == expected


def test_turkish_stems_have_turkish_capitals():
    analyzer = Analyzer(stemmer="turkish", stopwords=("ILE", "İÇİN"))
    assert analyzer.tokens("ISPARTA ısparta I\u0307zmir İZMİR izmir") == [
        "ıspar", "ıspar", "izmir", "izmir", "izmir"
    ]  # fmt: skip
    assert analyzer.tokens("ıle için") == []


def test_the_rule_of_the_first_version_is_kept():
    first = Analyzer(version=1, stopwords=("Der",))
    assert first.tokens("ＵＳＢ 赤 der İd cafe\u0301") == ["ｕｓｂ", "der", "i\u0307d", "café"]
    assert Analyzer.from_json(first.to_json()) == first


def test_the_shipped_stop_words_are_folded_and_distinct():
    words = english_stopwords()
    assert {"the", "of", "and"} <= words
    assert all(word == word.casefold() and word.isascii() for word in words)


def test_json_round_trip_keeps_recipe_and_fingerprint():
    for analyzer in (
        Analyzer(),
        Analyzer(stopwords="english", stemmer="porter"),
        Analyzer(stopwords=("b", "a"), lowercase=False, min_length=1, drop_numbers=True),
    ):
        again = Analyzer.from_json(analyzer.to_json())
        assert again == analyzer
        assert again.fingerprint == analyzer.fingerprint


def test_fingerprints_tell_recipes_apart():
    recipes = [
        Analyzer(),
        Analyzer(lowercase=False),
        Analyzer(min_length=1),
        Analyzer(max_length=10),
        Analyzer(stemmer="english"),
        Analyzer(stopwords="english"),
        Analyzer(stopwords=("der", "die")),
        Analyzer(stopwords=("der", "das")),
        Analyzer(drop_numbers=True),
        Analyzer(cjk_bigrams=True),
        Analyzer(version=1),
    ]
    assert len({recipe.fingerprint for recipe in recipes}) == len(recipes)
    assert Analyzer(stopwords=("die", "der")).fingerprint == recipes[6].fingerprint


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stopwords": "klingon"}, "stopwords: no list named 'klingon'"),
        ({"stemmer": "klingon"}, "stemmer: no algorithm named 'klingon'"),
        ({"min_length": 0}, "1 <= min_length"),
        ({"min_length": 5, "max_length": 4}, "min_length=5, max_length=4"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        Analyzer(**parameters)


def test_recipes_of_other_versions_are_refused():
    values = Analyzer().to_json()
    with pytest.raises(InputError, match=r"version 99.*analyse the texts again"):
        Analyzer.from_json({**values, "version": 99})
    with pytest.raises(InputError, match="unknown parameters colour"):
        Analyzer.from_json({**values, "colour": "red"})
