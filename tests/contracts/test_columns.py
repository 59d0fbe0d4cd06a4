"""What every registered column family must keep to, installed plug-ins included.

A family is tested with its default options, unless ``INSTANCES`` has another instance (the smallest
that works). One of ours that cannot compute added documents is named in ``KNOW_NO_ADDED``.
"""

import dataclasses
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from given import given_files
from knowledge import word_knowledge
from toys import context_of, toy

from letor import plugins
from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily, ColumnSpec
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.doc_embeddings import DocumentEmbeddingChunk, DocumentEmbeddingWord
from ltr_features.columns.document_numbers import DocumentNumbers
from ltr_features.columns.ensan2017 import Ensan2017
from ltr_features.columns.entities import (
    DocumentEmbeddingEntity,
    EntityOverlap,
    WordEmbeddingEntity,
)
from ltr_features.columns.given_scores import GivenScores
from ltr_features.columns.given_vectors import GivenVectors
from ltr_features.columns.letor46 import Letor46
from ltr_features.columns.registry import families, family_names, get_family
from ltr_features.columns.term_space import LetterSpace, VectorSpace
from ltr_features.columns.word_embeddings import WordEmbeddingWord
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.text.collection import Judgements, Links, Pairs
from ltr_features.text.index import TermIndex

GIVEN = given_files()
INSTANCES: dict[str, ColumnFamily] = {
    "letor46": Letor46(),
    "vsm": VectorSpace(),
    "letters": LetterSpace(),
    "w2v-word": WordEmbeddingWord(dimension=8, epochs=2),
    "d2v-word": DocumentEmbeddingWord(dimension=8, epochs=2),
    "d2v-chunk": DocumentEmbeddingChunk(dimension=8, epochs=2),
    "w2v-entity": WordEmbeddingEntity(knowledge=word_knowledge(), dimension=8, epochs=2),
    "d2v-entity": DocumentEmbeddingEntity(knowledge=word_knowledge(), dimension=8, epochs=2),
    "ensan2017": Ensan2017(knowledge=word_knowledge(), dimension=8, epochs=2),
    "entity-overlap": EntityOverlap(knowledge=word_knowledge()),
    "numbers": DocumentNumbers(file=GIVEN / "numbers.csv"),
    "scores": GivenScores(files={"engine": GIVEN / "engine.tsv"}, missing="lowest"),
    "vectors": GivenVectors(
        queries=GIVEN / "queries.npy",
        documents=GIVEN / "documents.npy",
        measures=["cosine", "dot", "distance"],
    ),
}

INSTANCES |= {name: get_family(name) for name in family_names() if name not in INSTANCES}
#: Families whose columns exist only for documents that were there from the beginning.
KNOW_NO_ADDED = {"scores", "vectors"}
WORDS = np.array([f"word{i}" for i in range(50)])


def random_collection(document_order):
    """40 documents with all fields, empty ones among them, and their links, in a given order."""
    rng = np.random.default_rng(3)
    texts = {
        field: [" ".join(rng.choice(WORDS, rng.integers(0, longest))) for _ in range(40)]
        for field, longest in (("body", 40), ("title", 4), ("anchor", 6), ("keywords", 3))
    }
    texts["url"] = [f"http://ex.org/{i % 4}/{i}" if i % 5 else "" for i in range(40)]
    source, target = rng.integers(0, 40, (2, 120))
    queries = [" ".join(rng.choice(WORDS, n)) for n in (1, 3, 8, 3)] + ["", "unseen", "word1 word1"]
    new_row = np.argsort(document_order)
    fields = {field: [column[i] for i in document_order] for field, column in texts.items()}
    judged = Judgements(np.array([0, 1, 2]), new_row[[1, 2, 3]], np.array([1, 2, 1]))
    made = toy(fields, queries, judged, Links(new_row[source], new_row[target]), "random")
    return dataclasses.replace(made, document_ids=[f"d{i}" for i in document_order])


@pytest.fixture(scope="module")
def context():
    return context_of(random_collection(np.arange(40)), threads=1)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(4)
    return Pairs(rng.integers(0, 7, 9000), rng.integers(0, 40, 9000))


@pytest.fixture(params=INSTANCES, scope="module")
def family(request):
    return INSTANCES[request.param]


@pytest.fixture(scope="module")
def values(family, context, pairs):
    return family.compute(context, pairs)


def test_every_family_has_the_name_under_which_it_is_registered():
    assert {name: family.name for name, family in INSTANCES.items()} == {n: n for n in families()}


def test_declarations_are_complete(family):
    assert family.description
    assert family.reference
    assert len(set(family.column_names)) == len(family.columns) > 0
    for column in family.columns:
        for part in ("name", "description", "unit", "value_range", "reference"):
            assert getattr(column, part).strip(), (column, part)
        assert column.name == column.name.lower().replace(" ", "_")


def test_one_finite_float_per_pair_and_column(family, values, pairs):
    assert values.shape == (len(pairs), len(family.columns))
    assert values.dtype == np.float32
    assert np.isfinite(values).all()


def test_values_lie_in_the_declared_range(family, values):
    for column, part in zip(family.columns, values.T, strict=True):
        if column.value_range.startswith(">= "):
            assert part.min() >= float(column.value_range[3:]), column
        elif column.value_range.startswith("<= "):
            assert part.max() <= float(column.value_range[3:]), column
        elif " to " in column.value_range:
            low, high = map(float, column.value_range.split(" to "))
            assert low <= part.min() <= part.max() <= high, column


def test_order_of_pairs_does_not_matter(family, context, pairs, values):
    order = np.random.default_rng(5).permutation(len(pairs))
    again = family.compute(context, Pairs(pairs.query[order], pairs.document[order]))
    np.testing.assert_array_equal(again, values[order])


def test_batch_equals_single_pairs(family, context, pairs, values):
    for row in range(0, len(pairs), 500):
        single = family.compute(
            context, Pairs(pairs.query[row : row + 1], pairs.document[row : row + 1])
        )
        np.testing.assert_array_equal(single[0], values[row])
    nothing = np.zeros(0, dtype=np.int64)
    assert family.compute(context, Pairs(nothing, nothing)).shape == (0, len(family.columns))


def test_labels_change_nothing(family, context, pairs, values):
    none = Judgements(*np.zeros((3, 0), dtype=np.int64))
    unjudged = dataclasses.replace(context.collection, judgements=none)
    again = family.compute(ColumnContext(unjudged, context.index), pairs)
    np.testing.assert_array_equal(again, values)


def test_order_of_documents_does_not_matter(family, pairs, values):
    order = np.random.default_rng(6).permutation(40)
    shuffled = context_of(random_collection(order), threads=1)
    again = family.compute(shuffled, Pairs(pairs.query, np.argsort(order)[pairs.document]))
    # Sums over documents (PageRank) may round differently.
    np.testing.assert_allclose(again, values, rtol=1e-6)


def test_threads_do_not_change_a_bit(family, pairs, values):
    threaded = context_of(random_collection(np.arange(40)), threads=2)
    np.testing.assert_array_equal(family.compute(threaded, pairs), values)


def test_nothing_is_taken_that_was_learned_with_other_parameters(family, context, pairs, values):
    """The context has kept what ``values`` were computed from."""
    other = {bool: lambda x: not x, int: lambda x: x + 1, float: lambda x: x / 2}
    given, tested = family.get_params(), Pairs(pairs.query[:500], pairs.document[:500])
    for name, value in given.items():
        if type(value) not in other:
            continue
        try:
            changed = type(family)(**given | {name: other[type(value)](value)})
            fresh = changed.compute(context_of(random_collection(np.arange(40)), threads=1), tested)
        except ValueError:  # it does not take that value
            continue
        np.testing.assert_array_equal(changed.compute(context, tested), fresh, err_msg=name)


def test_inputs_are_not_modified(family, context, pairs):
    watched = [
        pairs.query,
        pairs.document,
        context.query_counts.data,
        context.query_counts.indices,
        context.collection.links.source,
        *(context.index.field(s).counts for s in context.index.fields),
    ]
    before = [array.copy() for array in watched]
    family.compute(context, pairs)
    for array, old in zip(watched, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_a_stored_index_gives_the_same_bits(family, context, pairs, values, tmp_path):
    context.index.save(tmp_path / "index")
    reopened = ColumnContext(context.collection, TermIndex.open(tmp_path / "index"))
    np.testing.assert_array_equal(family.compute(reopened, pairs), values)


#: Of a document's place among others, which one that is added under a new id does not have.
OF_PLACES = ("pagerank", "inlinks", "outlinks", "child_pages")


def test_copies_that_are_added_have_the_columns_of_the_documents(family, context, pairs, values):
    """And those keep theirs: nothing that was learned from documents learns from added ones."""
    if not family.knows_added or not family.reads_texts:
        return
    texts, some = context.collection.fields, list(range(30, 2, -1))
    copies = toy({field: [column[d] for d in some] for field, column in texts.items()})
    copies = dataclasses.replace(copies, document_ids=[f"copy{d}" for d in some])
    added = context.of_added(copies).for_queries(context.collection.query_texts)
    rows = np.flatnonzero(np.isin(pairs.document, some))
    found = family.compute(added, Pairs(pairs.query[rows], 30 - pairs.document[rows]))
    same = [name not in OF_PLACES for name in family.column_names]
    np.testing.assert_allclose(found[:, same], values[rows][:, same], rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(family.compute(context, pairs), values)


def test_families_know_added_documents_except_those_named():
    ours = {n: f for n, f in INSTANCES.items() if type(f).__module__.startswith("ltr_features.")}
    assert {n for n, f in ours.items() if not f.knows_added} == KNOW_NO_ADDED


def test_queries_that_come_later_have_the_columns_of_the_batch(family, context, pairs, values):
    """In another order, and without the queries before them."""
    collection = context.collection
    for rows in (np.arange(6, -1, -1), np.array([5]), np.array([3])):
        later = context.for_queries(
            [collection.query_texts[row] for row in rows],
            [collection.query_ids[row] for row in rows],
        )
        asked = np.flatnonzero(np.isin(pairs.query, rows))
        place = np.argsort(rows)[np.searchsorted(np.sort(rows), pairs.query[asked])]
        again = family.compute(later, Pairs(place, pairs.document[asked]))
        np.testing.assert_array_equal(again, values[asked])


def test_pairs_outside_the_collection_are_refused(family, context):
    for query, document in ((7, 0), (-1, 0), (0, 40), (0, -1)):
        with pytest.raises(InputError, match="outside"):
            family.compute(context, Pairs(np.array([query]), np.array([document])))


def test_columns_are_selected_by_name(family, values):
    names = family.column_names[::-1][:3]
    np.testing.assert_array_equal(family.select(values, names), values[:, ::-1][:, :3])
    with pytest.raises(InputError, match="has no column nonsense"):
        family.select(values, ["nonsense"])


def test_every_family_is_made_by_its_name(family):
    assert get_family(family.name, **family.get_params()).column_names == family.column_names


def test_families_are_found_by_name():
    assert get_family("letor46", k1=1.0) == Letor46(k1=1.0)
    with pytest.raises(InputError, match="no column family 'letor47'; did you mean 'letor46'"):
        get_family("letor47")
    with pytest.raises(InputError, match=r"column family 'letor46'.*colour"):
        get_family("letor46", colour="red")


def with_parts(**parts):
    """A family of one's own, with parts that are wrong."""

    def compute(self, context, pairs):
        return np.zeros((len(pairs), 1), np.float32)

    columns = (ColumnSpec("mine", "1", "ones", "any", "nowhere"),)
    whole = {"name": "mine", "description": "d", "reference": "r", "columns": columns}
    return type("Mine", (ColumnFamily,), whole | {"compute": compute} | parts)()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"name": None}, "column family None has no name: set it in the class, name = '...'"),
        ({"reference": None}, "column family 'mine' has no reference"),
        ({"columns": ("mine",)}, r"columns must be a list of ColumnSpec, got \('mine',\)"),
        ({"columns": property(lambda self: {}["c"])}, "columns cannot be made: KeyError: 'c'"),
        ({"columns": property(lambda self: iter(()))}, "ColumnSpec, got <tuple_iterator"),
        ({"__init__": lambda self, k=1: None}, "must store the parameter 'k' unchanged, as self.k"),
        (
            {"__init__": lambda self, **k: None},
            r"\*\*k hides its parameters: name each of them, or",
        ),
    ],
)
def test_a_family_that_lacks_a_part_is_refused_before_any_work(parts, said):
    assert FeatureBuilder([with_parts()]).column_names == ["mine"]
    with pytest.raises(InputError, match=said):
        FeatureBuilder([with_parts(**parts)])


def test_other_packages_bring_families_by_entry_point():
    class Lucky(Letor46):
        name = "lucky"

    def points(group):
        assert group == "ltr_features.columns"
        return [SimpleNamespace(name="lucky", value="lucky:Lucky", load=lambda: Lucky)]

    def broken(group):
        return [SimpleNamespace(name="broken", value="gone:Gone", load=lambda: 1 / 0)]

    with patch.object(plugins, "entry_points", points):
        assert isinstance(get_family("lucky"), Lucky)
    with (
        patch.object(plugins, "entry_points", broken),
        pytest.raises(InputError, match=r"'broken' \(gone:Gone\) cannot be loaded"),
    ):
        families()


def test_contexts_of_other_collections_are_refused(context):
    fewer = dataclasses.replace(
        context.collection,
        document_ids=["d"],
        fields={"body": ["word1"]},
        judgements=Judgements.none(),
        links=None,
    )
    with pytest.raises(InputError, match="the index has 40 documents, collection 'random' has 1"):
        ColumnContext(fewer, context.index)
