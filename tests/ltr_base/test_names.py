"""What was meant by a name that there is not."""

from ltr_base.names import (
    close_names,
    counted,
    is_rounded,
    listed,
    nearest,
    quoted,
    repeated,
    rounded,
    written_otherwise,
)


def test_the_nearest_name_is_asked_for_whatever_its_case():
    assert nearest("LambdaMat", ["listnet", "lambdamart"]) == "did you mean 'lambdamart'?"
    assert nearest("ndgc", ["MAP", "NDCG"]) == "did you mean 'NDCG'?"


def test_without_one_all_are_listed():
    assert nearest("xyz", ["a", "b"]) == "there are a, b"
    assert nearest("xyz", ["a, b", "c"]) == "there are 'a, b', 'c'"
    assert nearest("xyz", []) == "there are none"
    assert nearest("xyz", map(str, range(3000))).endswith(" 58, 59, ... (3,000 in all)")


def test_one_is_no_plural():
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert [counted(n, "train query") for n in (1, 2)] == ["1 train query", "2 train queries"]
    assert [counted(n, "day") for n in (1, 2)] == ["1 day", "2 days"]


def test_several_are_given_nearest_first():
    assert close_names("vaswanni", ["vaswani", "cranfield", "vaswany2"], 3) == [
        "vaswani", "vaswany2"
    ]  # fmt: skip


def test_a_list_that_is_cut_says_so():
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c"], 2) == "a, b, ... (3 in all)"


def test_repeated_names_are_listed_once_and_sorted():
    assert repeated(["b", "a", "b", "c", "a", "b"]) == ["a", "b"]
    assert repeated(name for name in "abc") == []


def test_an_id_that_is_only_written_otherwise_is_told():
    for name, known in (("004", "4"), ("4", "004"), ("4.0", "4"), ("CR1 ", "cr1"), ("0", "00"),
                        ("0.0", "0"), ("0", "00.0"),
                        ("gro\u0308\u00dfe", "gr\u00f6\u00dfe")):  # fmt: skip
        assert written_otherwise(name, ["x", known]).startswith(f"there is {known!r}: write ids")
    for name, known in (("40", "4"), ("0", "1"), ("4.05", "4"), ("a", "b")):
        assert written_otherwise(name, [known]) == ""


def test_ids_that_lost_digits_as_floating_point_numbers_are_told():
    for name in (str(1234567890123456789.0), "1e+18", "-1.5E+17"):
        assert is_rounded(name)
        assert "write ids as text or integers" in written_otherwise(name, ["1234567890123456789"])
    for name in ("1234567890123456789", "1e18", "1e+05", "12e+x", "1.5", "a1e+18", "e+18", ""):
        assert not is_rounded(name)
    assert list(rounded(query=["1", "2"], document=["1.5e+18", "1.5e+18", "2"], tag=None)) == [
        "1 of 2 document ids are like '1.5e+18', and may be those of several"
    ]


def test_quoted() -> None:
    assert quoted("it's") == '"it\'s"'
    assert quoted("long text", 4) == "'long'..."
