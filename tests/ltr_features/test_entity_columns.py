import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from dumps import dump_xml, page_xml
from knowledge import make_knowledge
from toys import all_pairs, context_of, toy

from letor.errors import InputError
from ltr_features import FeatureBuilder
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.doc_embeddings import DocumentEmbeddingWord
from ltr_features.columns.entities import (
    DocumentEmbeddingEntity,
    EntityOverlap,
    WordEmbeddingEntity,
)
from ltr_features.entities.build import build_knowledge_base
from ltr_features.entities.linker import Mention
from ltr_features.entities.of_dump import base_of_dump
from ltr_features.entities.replay import StoredAnnotations, save_annotations
from ltr_features.feature_files import given_files
from ltr_features.text.collection import Pairs

BODIES = ["fox owl", "owl", "stone", "", "fox"]
QUERIES = ["fox", "owl stone", ""]

# Abstracts: Fox = "red red owl", Owl = "red", Stone has no words with vectors, Gone has no article.
# red = (1, 0), owl = (.6, .8).
NOTES = {
    "fox": [Mention(0, 3, "Fox", 0.4, 0.5, 1.0)],
    "owl stone": [Mention(0, 3, "Owl", 0.2, 0.5), Mention(4, 9, "Stone", 0.3, 0.1)],
    "fox owl": [
        Mention(0, 3, "Reynard", 0.4, 0.5),
        Mention(4, 7, "Owl", 0.2, 0.5),
        Mention(4, 7, "Owl", 0.2, 0.5),
    ],
    "owl": [Mention(0, 3, "Owl", 0.2, 0.5), Mention(0, 3, "Gone", 0.9, 0.9)],
    "stone": [Mention(0, 5, "Stone", 0.3, 0.1)],
}


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("entities")
    pages = [
        page_xml("Fox", "red red owl", page_id=1),
        page_xml("Owl", "red", page_id=2),
        page_xml("Stone", "grey", page_id=3),
        page_xml("Reynard", redirect="Fox", page_id=4),
    ]
    save_annotations(folder / "notes.jsonl", list(NOTES), list(NOTES.values()))
    (folder / "tiny.vec").write_text("red 2 0\nowl 3 4\n")
    return {
        "knowledge": str(make_knowledge(folder, pages)),
        "linker": "stored",
        "annotations": str(folder / "notes.jsonl"),
    }


@pytest.fixture(scope="module")
def context():
    return context_of(toy({"body": BODIES}, QUERIES))


@pytest.fixture
def pairs(context):
    return all_pairs(context.collection)


def test_overlaps_by_hand(context, pairs, options):
    values = EntityOverlap(**options).compute(context, pairs)
    shared = values[:, 0].reshape(3, 5)
    np.testing.assert_array_equal(shared, [[1, 0, 0, 0, 1], [1, 1, 1, 0, 0], [0] * 5])
    np.testing.assert_allclose(values[:, 1].reshape(3, 5)[1], [0.5, 0.5, 0.5, 0, 0])
    assert not values[:, 2:].any()  # no other field


def test_thresholds_apply_to_stored_raw_scores(context, pairs, options):
    def shared(**thresholds):
        values = EntityOverlap(**options, **thresholds).compute(context, pairs)
        return values[:, 0].reshape(3, 5)

    np.testing.assert_array_equal(shared(min_rho=0.25)[1], [0, 0, 1, 0, 0])
    np.testing.assert_array_equal(shared(min_link_probability=0.2)[1], [1, 1, 0, 0, 0])
    assert not shared(min_rho_query=0.5).any()


def stored(options, path, notes):
    """The options with annotations of these texts instead."""
    save_annotations(path, list(notes), list(notes.values()))
    return {**options, "annotations": str(path)}


def test_documents_without_an_entity_of_the_knowledge_base_are_refused(
    context, pairs, options, tmp_path
):
    other = {text: [Mention(0, 1, "Q42", 0.5, 0.5)] for text in NOTES}
    wrong = stored(options, tmp_path / "other.jsonl", other)
    for family in (EntityOverlap(**wrong), DocumentEmbeddingEntity(**wrong, dimension=4)):
        with pytest.raises(InputError, match=r"no document mentions an article of .*kb \('Fox', "):
            family.compute(context, pairs)
    dump = tmp_path / "bears.xml"
    dump.write_bytes(dump_xml([page_xml("Bear", "big")]))
    with pytest.raises(InputError, match=r"an article of .*bears.xml \('Bear'"):
        EntityOverlap(dump=str(dump)).compute(context, pairs)
    added = context.of_added(toy({"body": ["stoned"]}, []))
    none = stored(options, tmp_path / "none.jsonl", {**NOTES, "stoned": []})
    EntityOverlap(**none).linked_fields(added)


def test_vectors_that_know_no_word_of_the_abstracts_are_refused(context, pairs, options, tmp_path):
    (tmp_path / "foreign.vec").write_text("rouge 2 0\nhibou 3 4\n")
    foreign = WordEmbeddingEntity(**options, vectors=str(tmp_path / "foreign.vec"))
    with pytest.raises(InputError, match=r"vectors: .*foreign.vec has no word of the abstracts"):
        foreign.compute(context, pairs)
    other = context_of(toy({"body": ["rouge hibou", "rouge hibou"]}, []))
    trained = DocumentEmbeddingWord(dimension=4).load(other)
    trained.save(tmp_path / "foreign.safetensors")
    foreign = DocumentEmbeddingEntity(**options, model=str(tmp_path / "foreign.safetensors"))
    with pytest.raises(InputError, match=r"model: .*foreign.safetensors has no word of the abs"):
        foreign.compute(context, pairs)


def test_rows_without_an_entity_of_the_knowledge_base_are_told(context, pairs, options, tmp_path):
    assert EntityOverlap(**options).n_missing(context, pairs) == [7] * 8  # query or document is ""
    unknown = Mention(0, 3, "Q42", 0.5, 0.5)
    notes = {**NOTES, "fox": [unknown, *NOTES["fox"]], "owl stone": [unknown]}
    half = stored(options, tmp_path / "half.jsonl", notes)
    # Of the abstracts, texts like these have "owl" alone, which is Fox's.
    embedded = DocumentEmbeddingEntity(**half, dimension=4, min_count=1)
    for family, n in ((EntityOverlap(**half), 11), (embedded, 13)):
        assert family.n_missing(context, pairs) == [n] * 8
        assert family.missing_remark(family.column_names[0], n, 15).startswith(
            f"{n} of 15 rows ({n / 0.15:.1f} %) have no known entity in the query, or none in the"
        )
    vectors = options["annotations"].replace("notes.jsonl", "tiny.vec")
    family = WordEmbeddingEntity(**options, vectors=vectors)
    assert family.n_missing(context, pairs) == [9] * 8  # no word of Stone's abstract has a vector
    assert EntityOverlap(**options, min_rho=0.5).n_missing(context, pairs) == [15] * 8


def test_the_service_is_asked_in_the_language_of_the_knowledge_base(options, tmp_path, context):
    asked = {**options, "linker": "tagme", "annotations": str(tmp_path / "answers")}
    assert EntityOverlap(**asked).make_linker(context).language == "de"  # of the toy dump
    dump = dump_xml([page_xml("東京", "都", page_id=1)]).replace(b'lang="de"', b'lang="ja"')
    (tmp_path / "ja.xml").write_bytes(dump)
    build_knowledge_base(tmp_path / "ja.xml", tmp_path / "kb")
    other = EntityOverlap(**{**asked, "knowledge": str(tmp_path / "kb")})
    with pytest.raises(InputError, match=r"kb is of language 'ja', .* linker='wikipedia'"):
        other.check(context)


def test_a_text_with_two_annotations_is_refused(options, tmp_path):
    path = tmp_path / "twice.jsonl"
    line = '{"text": "fox", "mentions": []}\n'
    path.write_text(line + line)
    EntityOverlap(**{**options, "annotations": str(path)}).make_linker(None)
    first = Path(options["annotations"]).read_text("utf-8")
    path.write_text(first + line)
    with pytest.raises(InputError, match=r"twice.jsonl, line 6: the text 'fox' has other mentions"):
        StoredAnnotations(path)


def test_saved_columns_refuse_another_knowledge_base_but_more_annotations(
    context, options, tmp_path
):
    named = {**options, "knowledge": str(tmp_path / "kb"), "annotations": tmp_path / "notes.jsonl"}
    shutil.copytree(options["knowledge"], named["knowledge"])
    shutil.copy(options["annotations"], named["annotations"])
    FeatureBuilder([EntityOverlap(**named)], depth=5).fit(context).save(tmp_path / "saved")
    with named["annotations"].open("a") as file:
        file.write('{"text": "new", "mentions": []}\n')
    FeatureBuilder.load(tmp_path / "saved")
    make_knowledge(tmp_path, [page_xml("Fox", "red", page_id=1)])
    refused = r"kb is not what it was when family 'entity-overlap' was .* pipeline build takes"
    with pytest.raises(InputError, match=refused):
        FeatureBuilder.load(tmp_path / "saved")


def test_a_saved_builder_finds_its_annotations_from_anywhere(
    context, pairs, options, tmp_path, monkeypatch
):
    monkeypatch.chdir(Path(options["knowledge"]).parent)
    linked = {"dump": "dump.xml", "linker": "stored", "annotations": "notes.jsonl"}
    FeatureBuilder([EntityOverlap(**linked)], depth=5).fit(context).save(tmp_path / "saved")
    named = [str(Path.cwd() / name) for name in ("dump.xml", "notes.jsonl")]
    assert given_files(tmp_path / "saved") == named
    monkeypatch.chdir(tmp_path)
    again = FeatureBuilder.load(tmp_path / "saved").families[0]
    np.testing.assert_array_equal(
        again.compute(context, pairs), EntityOverlap(**options).compute(context, pairs)
    )


def test_abstract_word_cosines_by_hand(context, pairs, options):
    vectors = options["annotations"].replace("notes.jsonl", "tiny.vec")
    family = WordEmbeddingEntity(**options, vectors=vectors)
    values = family.compute(context, pairs)
    # Means: Fox (2.6, .8) / 3; Owl (1, 0); document 0 has both: (3.6, .8) / 4.
    fox, owl, both = np.array([2.6, 0.8]) / 3, np.array([1, 0]), np.array([3.6, 0.8]) / 4
    average = values[:, 0].reshape(3, 5)
    np.testing.assert_allclose(average[0], [fox @ both, fox @ owl, 0, 0, fox @ fox], rtol=1e-6)
    np.testing.assert_allclose(average[1], [owl @ both, 1, 0, 0, owl @ fox], rtol=1e-6)
    np.testing.assert_allclose(values[:, 1].reshape(3, 5)[:2, [0, 1, 4]], 1, rtol=1e-6)
    assert not average[2].any()


def test_entities_that_no_document_mentions_have_their_vectors(context, options, tmp_path):
    vectors = options["annotations"].replace("notes.jsonl", "tiny.vec")
    texts = context_of(toy({"body": ["red owl", "red grey"]}))
    trained = DocumentEmbeddingEntity(dimension=8, epochs=3, min_count=1)
    trained.load(texts).save(tmp_path / "model.safetensors")
    one = context_of(toy({"body": ["owl"]}, QUERIES[:2]))
    one_pairs = Pairs(np.arange(2), np.zeros(2, dtype=np.int64))
    both_pairs = Pairs(np.arange(2), np.ones(2, dtype=np.int64))  # BODIES[1] is "owl", too
    for family in (
        WordEmbeddingEntity(**options, vectors=vectors),
        DocumentEmbeddingEntity(**options, model=str(tmp_path / "model.safetensors")),
    ):
        values = family.compute(one, one_pairs)
        np.testing.assert_allclose(values, family.compute(context, both_pairs), rtol=1e-6)
        assert values[:, :2].all()


def test_eight_columns_each_and_bad_options_are_named(context, pairs, options):
    for family in (WordEmbeddingEntity, DocumentEmbeddingEntity, EntityOverlap):
        assert len(family().columns) == 8
    with pytest.raises(InputError, match="need a knowledge base: make one with"):
        EntityOverlap().compute(context, pairs)
    with pytest.raises(InputError, match="linker must be 'wikipedia' or"):
        EntityOverlap(linker="wat")
    with pytest.raises(InputError, match="min_rho must lie between 0 and 1, got 2"):
        EntityOverlap(min_rho=2)
    with pytest.raises(InputError, match="'tagme' needs the name of a file"):
        EntityOverlap(linker="tagme")
    with pytest.raises(InputError, match=r"'.*notes.jsonl' is not read by the linker 'wikipedia'"):
        EntityOverlap(**options | {"linker": "wikipedia"})
    with pytest.raises(InputError, match="no annotations for 1 of 1 texts"):
        EntityOverlap(**options).compute(
            context.for_queries(["new"]), Pairs(*np.zeros((2, 1), int))
        )


def test_a_dump_gives_the_columns_of_its_knowledge_base(context, pairs, options, tmp_path):
    dump = options["knowledge"].replace("kb", "dump.xml")
    expected = EntityOverlap(**options).compute(context, pairs)
    linked = {k: v for k, v in options.items() if k != "knowledge"} | {"dump": dump}
    np.testing.assert_array_equal(EntityOverlap(**linked).compute(context, pairs), expected)
    kept = EntityOverlap(**linked, folder=tmp_path)
    fresh = ColumnContext(context.collection, context.index)
    np.testing.assert_array_equal(kept.compute(fresh, pairs), expected)
    (made,) = tmp_path.iterdir()
    marked = (made / "knowledge.json").stat()
    again = ColumnContext(context.collection, context.index)
    np.testing.assert_array_equal(kept.compute(again, pairs), expected)
    assert (made / "knowledge.json").stat() == marked


def test_a_kept_knowledge_base_is_that_of_the_dump_s_content(options, tmp_path):
    dump = Path(options["knowledge"]).with_name("dump.xml")
    copied, kept = tmp_path / "copy.xml", tmp_path / "kept"
    copied.write_bytes(dump.read_bytes())
    one = base_of_dump(str(copied), kept)
    assert base_of_dump(str(dump), kept).path == one.path  # wherever it lies
    before = copied.stat()
    copied.write_bytes(dump.read_bytes().replace(b"Owl", b"Elk"))
    os.utime(copied, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert base_of_dump(str(copied), kept).path != one.path


def test_a_knowledge_base_ends_in_silence_where_mapped_files_cannot_be_removed(
    options, tmp_path, monkeypatch
):
    def refused(*_, **__):
        raise PermissionError

    told = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    base = base_of_dump(str(Path(options["knowledge"]).with_name("dump.xml")))
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with monkeypatch.context() as windows:
        windows.setattr(os, "unlink", refused)
        del base
    assert told == []


def test_dumps_that_are_not_there_or_in_excess_are_named(options):
    with pytest.raises(InputError, match="dump: no file nowhere; name a dump"):
        EntityOverlap(dump="nowhere")
    with pytest.raises(InputError, match="knowledge and dump are both given"):
        EntityOverlap(**options, dump="wikipedia-excerpt")
    assert EntityOverlap(dump="wikipedia-excerpt").dump


def test_an_average_does_not_depend_on_the_entities_of_other_queries(tmp_path):
    pages = [
        page_xml("Fox", "ash red sky", page_id=1),
        page_xml("Owl", "red", page_id=2),
        page_xml("Wolf", "grey", page_id=3),
    ]
    texts = ["fox", "owl", "wolf"]
    mentions = [[Mention(0, 3, text.title(), 0.5, 0.5)] for text in texts]
    save_annotations(tmp_path / "notes.jsonl", texts, mentions)
    # Added in another order, the first coordinates of ash, red and sky give 0, not 1e-17.
    (tmp_path / "tiny.vec").write_text("ash -1 0\nred 1 0\nsky 1e-17 1\ngrey 0 1\n")
    family = WordEmbeddingEntity(
        knowledge=make_knowledge(tmp_path, pages), linker="stored",
        annotations=tmp_path / "notes.jsonl", vectors=str(tmp_path / "tiny.vec"),
    )  # fmt: skip
    context = context_of(toy({"body": ["owl", "fox"]}, ["fox", "wolf"]))
    together = family.compute(context, all_pairs(context.collection))
    alone = context.for_queries(["fox"])
    np.testing.assert_array_equal(family.compute(alone, all_pairs(alone.collection)), together[:2])
