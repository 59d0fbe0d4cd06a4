"""Tasks: what is trained on, what is tested, and that the two stay apart."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from letor.compression import open_output
from letor.errors import InputError
from ltr_features.studies.kinds.matching_config import TaskConfig
from ltr_features.studies.kinds.matching_tasks import (
    Task,
    draw_words,
    make_task,
    unseen_documents,
)

LINKS = TaskConfig(source="links", folder="articles", n_triples=500, n_test_queries=20)
MATES = TaskConfig(source="pairs", folder="sentences", n_documents=30, n_triples=500)


def pairs(preferences) -> set[tuple[int, int]]:
    return set(zip(preferences.query.tolist(), preferences.document.tolist(), strict=True))


def test_links_are_dealt_once(small_data):
    task = make_task(LINKS, small_data)
    train, test = pairs(task.train), pairs(task.test)
    assert not train & test
    assert len(train) + len(test) == 60 * 6  # without the self-link
    assert 0.6 < len(train) / (len(train) + len(test)) < 0.8
    assert set(zip(task.known_query, task.known_document, strict=True)) <= train
    assert (task.excluded == np.arange(60)).all()
    assert len(task.asked) == 20
    assert task.D is task.Q


def papers(folder: Path, links: str, corpus: str = "corpus.jsonl") -> Path:
    """Ten papers with a title each, and a text for every second; links as given."""
    (folder / "papers").mkdir()
    lines = [
        json.dumps({"_id": f"p{i}", "title": f"title{i}", "text": f"text{i}" if i % 2 else ""})
        for i in range(10)
    ]
    with open_output(folder / "papers" / corpus, Path(corpus).suffix) as file:
        file.write("\n".join(lines).encode())
    (folder / "papers" / "links.tsv").write_text(links, encoding="utf-8")
    return folder


def both_ways() -> str:
    """All links between ten papers, in both directions."""
    return "".join(f"p{i}\tp{j}\n" for i in range(10) for j in range(10) if i != j)


PAPERS = TaskConfig(source="links", folder="papers", n_triples=500, n_test_queries=20)


def test_pairs_that_training_gives_away_are_counted(tmp_path):
    data = papers(tmp_path, both_ways())
    task = make_task(PAPERS, data)
    reversed_pairs = {(d, q) for q, d in pairs(task.train)} & pairs(task.test)
    assert task.facts()["reversed_pairs"] == len(reversed_pairs) > 10
    keywords = PAPERS.model_copy(update={"query_words": 1})
    asked = make_task(keywords, data)
    source = asked.excluded
    trained = {(d, source[q]) for q, d in pairs(asked.train)}
    given_away = trained & {(source[q], d) for q, d in pairs(asked.test)}
    assert asked.facts()["reversed_pairs"] == len(given_away) > 10


def test_a_link_and_its_reverse_stay_together(tmp_path):
    data = papers(tmp_path, both_ways() + "p0\tp1\n")
    task = make_task(PAPERS.model_copy(update={"split": "linked-pairs"}), data)
    for part in (task.train, task.test):
        assert {(d, q) for q, d in pairs(part)} == pairs(part)
    assert len(task.train) + len(task.test) == 90
    assert len(task.train) > len(task.test) > 0
    assert task.facts()["reversed_pairs"] == 0


def test_documents_of_the_same_text_are_one(tmp_path):
    """Else a link between their copies would give the answer away, or an answer be called wrong."""
    data = papers(tmp_path, both_ways())
    plain = make_task(PAPERS, data)
    corpus = data / "papers" / "corpus.jsonl"
    lines = corpus.read_text().splitlines()
    copies = [
        {"_id": f"copy{i}", "title": f" Title{i} ", "text": f"text{i}" if i % 2 else ""}
        for i in range(10)
    ]
    corpus.write_text("\n".join([*lines, *map(json.dumps, copies)]))
    links = data / "papers" / "links.tsv"
    links.write_text(links.read_text() + both_ways().replace("p", "copy"))
    task = make_task(PAPERS, data)
    assert (task.D != plain.D).nnz == 0
    assert (pairs(task.train), pairs(task.test)) == (pairs(plain.train), pairs(plain.test))
    assert (task.facts()["copies"], plain.facts()["copies"]) == (10, 0)


def parallel(folder: Path, **parts: list[tuple[str, str]]) -> Path:
    """Sentences in two languages: ``train`` and ``test``, without ``dev``."""
    (folder / "sentences").mkdir()
    for part in ("train", "dev", "test"):
        for language, texts in zip(
            ("ja", "en"), zip(*parts.get(part, [("", "")]), strict=True), strict=True
        ):
            file = folder / "sentences" / f"{part}.{language}"
            file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder


def test_pairs_of_training_are_not_tested_and_equal_mates_are_one(tmp_path):
    train = [("datei", "file"), ("bild", "image"), ("auf", "open"), ("ton", "sound")]
    test = [
        ("Datei", "File"),
        ("bild", "picture"),
        ("offen", "open"),
        ("neu", "new"),
        ("neu", "new"),
    ]
    task = make_task(MATES, parallel(tmp_path, train=train, test=test))
    assert task.facts()["taught_pairs"] == 1
    # datei bild auf ton (dev) offen neu; file image open sound (dev) picture new
    assert pairs(task.train) == {(i, i) for i in range(4)}
    assert pairs(task.test) == {(1, 5), (5, 2), (6, 6)}
    assert set(task.database) == {0, 1, 2, 3, 5, 6}
    known = set(zip(task.known_query.tolist(), task.known_document.tolist(), strict=True))
    assert known == {(1, 1)}
    assert task.facts()["copies"] == 3 + 3  # datei, bild, neu; file, open, new


def test_letter_trigrams_may_be_counted(tmp_path):
    train, test = [("datei", "file"), ("dateien", "files")], [("neu", "new")]
    config = MATES.model_copy(update={"terms": "letter-trigrams"})
    task = make_task(config, parallel(tmp_path, train=train, test=test))
    assert np.diff(task.D.indptr).tolist() == [4, 5, 0, 3]  # #fi fil ile le#; les es#; (dev); ...
    shared = set(task.D[0].indices) & set(task.D[1].indices)
    assert len(shared) == 3
    assert task.D.shape[1] == 4 + 2 + 3


@pytest.mark.parametrize("corpus", ["corpus.jsonl", "corpus.jsonl.zst"])
def test_papers_are_read_with_their_titles(tmp_path, corpus):
    data = papers(tmp_path, both_ways(), corpus)
    task = make_task(PAPERS, data)
    assert np.diff(task.D.indptr).tolist() == [1, 2] * 5
    assert task.facts()["without_words"] == 0
    bodies = make_task(PAPERS.model_copy(update={"fields": ("body",)}), data)
    assert np.diff(bodies.D.indptr).tolist() == [0, 1] * 5
    assert bodies.facts()["without_words"] == 5


def test_the_documents_split_has_no_link_between_the_parts(small_data):
    task = make_task(LINKS.model_copy(update={"split": "documents"}), small_data)
    assert not set(task.database) & set(task.candidates)
    assert {row for pair in pairs(task.train) for row in pair} <= set(task.candidates)
    assert {row for pair in pairs(task.test) for row in pair} <= set(task.database)
    assert set(task.triples[2]) <= set(task.database)


def test_training_documents_are_split_again(small_data):
    config = LINKS.model_copy(update={"split": "documents"})
    task = make_task(config, small_data)
    inner = unseen_documents(task, config)
    assert pairs(inner.train) | pairs(inner.test) <= pairs(task.train)
    assert not set(inner.database) & set(inner.candidates)
    assert set(inner.database) | set(inner.candidates) == set(task.candidates)
    assert {row for pair in pairs(inner.test) for row in pair} <= set(inner.database)
    assert {row for pair in pairs(inner.train) for row in pair} <= set(inner.candidates)


def test_triples_have_a_test_answer_and_another_document(small_data):
    task = make_task(LINKS, small_data)
    query, positive, negative = task.triples
    assert set(zip(query, positive, strict=True)) <= pairs(task.test)
    others = set(zip(query, negative, strict=True))
    assert not others & (pairs(task.test) | pairs(task.train))
    assert (query != negative).all()
    assert 300 < len(query) <= 500


def test_keyword_queries_are_words_of_their_article_and_new_in_testing(small_data):
    config = LINKS.model_copy(update={"query_words": 3, "queries_per_article": 2, "n_words": 80})
    task = make_task(config, small_data)
    assert task.Q.shape == (180, task.D.shape[1])
    assert (np.diff(task.Q.indptr) <= 3).all()
    for row in range(180):
        own = set(task.D[task.excluded[row]].indices)
        assert set(task.Q[row].indices) <= own
    assert task.train.query.max() < 120 <= task.test.query.min()
    assert (task.excluded[120:] == np.arange(60)).all()
    assert (task.groups == task.excluded).all()
    # The known answers of a test query are the training links of its article.
    trained = {(task.excluded[q], d) for q, d in pairs(task.train)}
    known = set(zip(task.excluded[task.known_query], task.known_document, strict=True))
    assert known <= trained
    assert (np.diff(task.known_query) >= 0).all()


def test_mates_are_tested_among_test_and_drawn_sentences(small_data):
    task = make_task(MATES, small_data)
    assert task.Q.shape[0] == task.D.shape[0] == 105
    assert pairs(task.train) == {(i, i) for i in range(80)}
    assert pairs(task.test) == {(i, i) for i in range(85, 105)}
    assert len(task.database) == 50
    assert set(range(85, 105)) <= set(task.database)
    assert (task.excluded == -1).all()


def test_a_share_of_the_training_pairs(small_data):
    for config in (LINKS, MATES):
        every = make_task(config, small_data)
        some = make_task(config.model_copy(update={"use_share": 0.25}), small_data)
        assert len(some.train) == round(0.25 * len(every.train))
        assert pairs(some.train) <= pairs(every.train)


@pytest.mark.parametrize("kind", ["links", "keywords", "mates"])
def test_what_is_tested_does_not_depend_on_the_share_of_training_pairs(small_data, kind):
    """Links that are not used are known all the same, and no wrong answers."""
    config = {"links": LINKS, "mates": MATES}.get(kind, LINKS.model_copy(update={"query_words": 3}))
    config = config.model_copy(update={"n_test_queries": 5})
    every = make_task(config, small_data)
    some = make_task(config.model_copy(update={"use_share": 0.25}), small_data)
    assert (every.Q != some.Q).nnz == 0
    assert pairs(some.test) == pairs(every.test)
    for name in ("asked", "triples", "known_query", "known_document", "excluded", "database"):
        np.testing.assert_array_equal(getattr(some, name), getattr(every, name), err_msg=name)


def test_the_dictionary_has_the_most_frequent_words_of_enough_documents(small_data):
    limited = make_task(LINKS.model_copy(update={"n_words": 12}), small_data)
    assert limited.D.shape[1] == 12
    frequent = make_task(LINKS.model_copy(update={"min_documents": 3}), small_data)
    assert np.bincount(frequent.D.indices, minlength=frequent.D.shape[1]).min() >= 3


def test_a_task_comes_back_from_its_folder(small_data, tmp_path):
    for name, config in (("links", LINKS), ("mates", MATES)):
        task, folder = make_task(config, small_data), tmp_path / name
        folder.mkdir()
        task.save(folder)
        loaded = Task.load(folder)
        assert (loaded.Q != task.Q).nnz == 0
        assert (loaded.D != task.D).nnz == 0
        assert pairs(loaded.train) == pairs(task.train)
        assert pairs(loaded.test) == pairs(task.test)
        np.testing.assert_array_equal(loaded.triples, task.triples)
        np.testing.assert_array_equal(loaded.asked, task.asked)


def test_a_task_is_the_same_again(small_data):
    first, second = make_task(LINKS, small_data), make_task(LINKS, small_data)
    np.testing.assert_array_equal(first.triples, second.triples)
    assert (first.Q != second.Q).nnz == 0


def test_drawn_words_are_distinct_and_all_where_there_are_few():
    counts = sp.csr_matrix(np.array([[1, 5, 0, 2], [0, 3, 0, 0]], np.int32))
    drawn = draw_words(counts, np.array([0, 1, 0]), 2, np.random.default_rng(0))
    assert drawn.shape == (3, 4)
    assert (drawn.data == 1).all()
    assert np.diff(drawn.indptr).tolist() == [2, 1, 2]
    assert not set(drawn[0].indices) & {2}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("links.tsv", "A0\tA1\tA2\n", "links.tsv, line 1: 3 fields, expected 2, separated by tabs"),
        ("links.tsv", "source\ttarget\nA0\tA1\n", "links.tsv, line 1: 'source' is no known id"),
        ("links.tsv", "A0\tA1\n", "training and .* test pairs"),
        ("corpus.jsonl.gz", None, "corpus.jsonl: no such file"),
    ],
)
def test_bad_files_are_named(small_data, tmp_path, name, content, message):
    folder = tmp_path / "articles"
    shutil.copytree(small_data / "articles", folder)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        make_task(LINKS, tmp_path)


def test_languages_of_unequal_length_are_refused(small_data, tmp_path):
    shutil.copytree(small_data / "sentences", tmp_path / "sentences")
    (tmp_path / "sentences" / "train.en").write_text("one line\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"train\.\w+ has \d+ lines, train\.en 1: line i of"):
        make_task(MATES, tmp_path)


@pytest.mark.data
def test_wikispeedia_has_its_links(data_folder: Path):
    config = TaskConfig(source="links", folder="wikispeedia", n_words=2000, heaviest=20)
    facts = make_task(config, data_folder).facts()
    assert facts["documents"] == 4598
    assert 119_000 < facts["training_pairs"] + facts["test_pairs"] < 120_000
    assert facts["words_per_document"] <= 20
