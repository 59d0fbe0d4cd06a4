import json
import shutil

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from toys import toy

from letor.errors import InputError
from letor.mapped import GrowingArray, empty_array
from ltr_features.text import field_counts
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.candidates import BM25Retriever
from ltr_features.text.collection import Collection, Judgements
from ltr_features.text.index import WHOLE, TermIndex


def collection(**fields):
    return toy(fields)


@pytest.fixture
def index():
    return TermIndex.build(
        collection(title=["Red fox", "", "owl"], body=["a red, red fox", "blue owl blue", ""])
    )


def test_counts_and_statistics(index):
    assert index.vocabulary.words == ("blue", "fox", "owl", "red")
    assert index.fields == ("body", "title")
    assert index.n_documents == 3
    assert index.counts("body").toarray().tolist() == [[0, 1, 0, 2], [2, 0, 1, 0], [0, 0, 0, 0]]
    assert index.counts("title").toarray().tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert index.counts("whole").toarray().tolist() == [[0, 2, 0, 3], [2, 0, 1, 0], [0, 0, 1, 0]]
    assert index.counts("body").dtype == np.int32
    assert index.field("whole").lengths.tolist() == [5, 3, 1]
    assert index.field("whole").document_frequency.tolist() == [1, 1, 2, 1]
    assert index.field("title").document_frequency.tolist() == [0, 1, 1, 1]
    assert index.field("whole").collection_frequency.tolist() == [2, 2, 2, 3]
    assert index.field("body").mean_length == 2.0


def test_the_whole_of_one_field_is_that_field(tmp_path):
    index = TermIndex.build(collection(body=["red fox", "owl"]))
    index.save(tmp_path / "index")
    for one in (index, TermIndex.open(tmp_path / "index")):
        assert one.fields == ("body",)
        assert (one.counts("whole") != one.counts("body")).nnz == 0
    assert not (tmp_path / "index" / "whole.terms.npy").exists()


def test_queries_are_analysed_by_the_same_recipe_and_unseen_words_left_out(index):
    counts = index.query_counts(["RED red unicorn", "", "owl! fox?"])
    assert counts.toarray().tolist() == [[0, 0, 0, 2], [0, 0, 0, 0], [0, 1, 1, 0]]
    assert counts.dtype == np.int32
    assert counts.has_sorted_indices
    assert index.query_counts([]).shape == (0, 4)


def test_a_missing_field_is_named(index):
    assert "anchor" not in index
    assert "whole" in index
    with pytest.raises(InputError, match="no field 'anchor'; it has body, title, whole"):
        index.counts("anchor")


def test_save_and_open_give_the_same_index(index, tmp_path):
    index.save(tmp_path / "index")
    again = TermIndex.open(tmp_path / "index")
    assert again.vocabulary == index.vocabulary
    assert again.analyzer == index.analyzer
    assert again.fields == index.fields
    assert again.fingerprint == index.fingerprint
    for field in ("body", "title", "whole"):
        assert (again.counts(field) != index.counts(field)).nnz == 0
        for name in ("ends", "terms", "counts", "lengths", "document_frequency"):
            ours, theirs = getattr(again.field(field), name), getattr(index.field(field), name)
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype
    # Saving again replaces the folder; nothing else is left beside it.
    again.save(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_changes_in_memory_never_reach_the_files(index, tmp_path):
    index.save(tmp_path / "index")
    opened = TermIndex.open(tmp_path / "index")
    with pytest.raises(ValueError, match="read-only"):
        opened.field("body").counts[:] = 99
    opened.field("whole").postings.counts[:] = 99
    again = TermIndex.open(tmp_path / "index")
    assert again.counts("body").max() == 2
    assert again.field("whole").postings.counts.max() < 99


def test_words_of_any_script_survive(tmp_path):
    TermIndex.build(collection(body=["Straße 日本 𐐀𐐁 é"])).save(tmp_path / "index")
    assert TermIndex.open(tmp_path / "index").vocabulary.words == ("strasse", "日本", "𐐨𐐩")


def test_a_field_without_words_can_be_stored(tmp_path):
    TermIndex.build(collection(title=["", "?"], body=["a word", ""])).save(tmp_path / "index")
    again = TermIndex.open(tmp_path / "index")
    assert again.counts("title").nnz == 0
    assert again.counts("body").shape == again.counts("title").shape == (2, 1)


def test_a_collection_without_words_is_refused():
    with pytest.raises(InputError, match="'toy': no document has a word; check which fields"):
        TermIndex.build(collection(body=["", "?"]))


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_text_is_named_by_its_document(missing):
    with pytest.raises(InputError, match=f"title of document 'd1' is {missing}, not text; use ''"):
        TermIndex.build(collection(body=["a", "b"], title=["x", missing]))


@pytest.mark.parametrize("characters", [1, 9])
def test_blocks_of_documents_do_not_matter(characters, monkeypatch):
    fields = {"title": ["red", "", "owl fox", "x"], "body": ["fox", "blue owl", "", "zebra red"]}
    index = TermIndex.build(collection(**fields))
    monkeypatch.setattr("ltr_features.text.index.BLOCK_CHARACTERS", characters)
    blockwise = TermIndex.build(collection(**fields))
    assert blockwise.vocabulary == index.vocabulary
    for field in ("title", "body", "whole"):
        assert (blockwise.counts(field) != index.counts(field)).nnz == 0


def test_incomplete_and_foreign_folders_are_refused(index, tmp_path):
    folder = tmp_path / "index"
    with pytest.raises(InputError, match="no index here"):
        TermIndex.open(folder)
    index.save(folder)

    (folder / "body.counts.npy").rename(folder / "gone")
    with pytest.raises(InputError, match=r"incomplete, body\.counts\.npy is missing"):
        TermIndex.open(folder)
    np.save(folder / "body.counts.npy", np.zeros(1, np.int32))
    with pytest.raises(InputError, match=r"body\.counts\.npy: has shape \(1,\), must be 4"):
        TermIndex.open(folder)
    (folder / "body.counts.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match="damaged"):
        TermIndex.open(folder)
    (folder / "gone").replace(folder / "body.counts.npy")
    TermIndex.open(folder)

    header = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**header, "version": 0}))
    with pytest.raises(InputError, match="index of version 0; this program reads version 1"):
        TermIndex.open(folder)
    (folder / "index.json").write_text("{")
    with pytest.raises(InputError, match="not the header of an index"):
        TermIndex.open(folder)


def test_a_folder_with_other_things_is_not_overwritten(index, tmp_path):
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(InputError, match="is not empty and holds no index"):
        index.save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "important"


def test_the_recipe_is_kept(tmp_path):
    recipe = Analyzer(stopwords="english", stemmer="english", min_length=3)
    TermIndex.build(collection(body=["the running foxes"]), recipe).save(tmp_path / "index")
    again = TermIndex.open(tmp_path / "index")
    assert again.analyzer == recipe
    assert again.vocabulary.words == ("fox", "run")
    assert again.query_counts(["Fox runs"]).toarray().tolist() == [[1, 1]]


def copied(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def opens_or_is_refused(folder):
    """Whether it opens; then its counts can be used."""
    try:
        index = TermIndex.open(folder)
    except InputError as error:
        said = str(error)
    else:
        for field in (*index.fields, WHOLE):
            np.asarray(index.counts(field).sum(axis=0))
        asked = csr_matrix(np.ones((1, len(index.vocabulary)), np.int32))
        assert len(BM25Retriever(index).top(asked, 5)[0]) <= 5
        return True
    assert str(folder) in said or "recipe" in said or "analyzer" in said or "stem" in said
    return False


@pytest.mark.parametrize("rows", [2, 1000])
def test_postings_are_the_counts_by_term(index, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(field_counts, "_ROWS", rows)
    index.save(tmp_path / "index")
    by_term = index.counts(WHOLE).tocsc()
    for postings in (
        index.field(WHOLE).postings,
        TermIndex.open(tmp_path / "index").field(WHOLE).stored_postings,
    ):
        np.testing.assert_array_equal(postings.ends, by_term.indptr)
        np.testing.assert_array_equal(postings.documents, by_term.indices)
        np.testing.assert_array_equal(postings.counts, by_term.data)


def test_an_index_of_an_earlier_version_has_no_postings(index, tmp_path):
    index.save(tmp_path / "index")
    for path in (tmp_path / "index").glob("postings.*"):
        path.unlink()
    whole = TermIndex.open(tmp_path / "index").field(WHOLE)
    assert whole.stored_postings is None
    np.testing.assert_array_equal(whole.postings.counts, index.field(WHOLE).postings.counts)


def test_a_collection_without_fields_is_refused():
    nothing = Collection("toy", ["d"], {}, [], [], Judgements.none())
    for counted in (None, iter(())):
        with pytest.raises(InputError, match="collection 'toy' has no fields to index"):
            TermIndex.build(nothing, counted=counted)


def test_counts_on_the_disk_are_those_in_memory(monkeypatch):
    """With few bytes held, the arrays of the counts, their sum and their postings are mapped."""
    texts = [f"word{i % 7} is word{i % 11} of {i}" for i in range(500)]
    c = collection(title=texts[::-1], body=texts)
    in_memory = TermIndex.build(c)
    monkeypatch.setattr("ltr_features.text.index.BLOCK_CHARACTERS", 900)
    monkeypatch.setattr("ltr_features.text.index._ROWS", 90)
    monkeypatch.setattr("ltr_features.text.term_counts._ROWS", 90)
    for made in (GrowingArray.__init__, empty_array):
        monkeypatch.setitem(made.__kwdefaults__, "memory", 64)
    on_disk = TermIndex.build(c)
    for field in ("title", "body", WHOLE):
        for name in ("ends", "terms", "counts", "lengths", "document_frequency"):
            expected, found = (getattr(i.field(field), name) for i in (in_memory, on_disk))
            np.testing.assert_array_equal(found, expected)
        for expected, found in zip(
            in_memory.field(field).postings, on_disk.field(field).postings, strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def test_changed_arrays_are_refused(index, tmp_path):
    """Values that a kernel would go astray by, wrong lengths and types, cut and swapped files."""
    rng = np.random.default_rng(0)
    index.save(tmp_path / "index")
    files = sorted(path.name for path in (tmp_path / "index").glob("*.npy"))
    folder, refused = tmp_path / "changed", 0
    for _ in range(300):
        copied(tmp_path / "index", folder)
        path = folder / files[rng.integers(len(files))]
        array = np.load(path)
        change = rng.integers(5)
        if change == 0 and array.size:
            limits = np.iinfo(array.dtype)
            array[rng.integers(array.size)] = rng.choice([limits.max, limits.min, 2**7])
            np.save(path, array)
        elif change == 1:
            np.save(path, array[: rng.integers(array.size + 1)])
        elif change == 2:
            np.save(path, array.astype(rng.choice(["int8", "float64", "uint64", "<U3"])))
        elif change == 3:
            whole = path.read_bytes()
            path.write_bytes(whole[: rng.integers(len(whole))])
        else:
            np.save(path, array[:, None])
        refused += not opens_or_is_refused(folder)
    assert refused > 200


def test_changed_headers_are_refused(index, tmp_path):
    rng = np.random.default_rng(1)
    index.save(tmp_path / "index")
    header = json.loads((tmp_path / "index" / "index.json").read_text())
    others = [None, -1, 2**70, "x", [], {}, [[1]], 1.5, True]
    refused = 0
    for _ in range(300):
        changed = json.loads(json.dumps(header))
        place = changed
        if rng.random() < 0.4:
            place = changed[["analyzer", "n_entries"][rng.integers(2)]]
        place[sorted(place)[rng.integers(len(place))]] = others[rng.integers(len(others))]
        (tmp_path / "index" / "index.json").write_text(json.dumps(changed))
        refused += not opens_or_is_refused(tmp_path / "index")
    for broken in ("", "[" * 100_000, "[]", "\x00"):
        (tmp_path / "index" / "index.json").write_text(broken)
        assert not opens_or_is_refused(tmp_path / "index")
    assert refused > 200
