"""The sample: every form holds the same collection."""

import numpy as np
import pytest
from folders import contents, different
from threadpoolctl import threadpool_limits

from letor.errors import InputError
from letor.svmlight import read_letor
from letor.trec import read_qrels, read_run
from ltr_features.sample import RATINGS, write_sample
from ltr_features.sources.registry import read_collection


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "new"
    return folder, write_sample(folder)


def relevant(collection):
    judged = collection.judgements
    return {
        (collection.query_texts[q], collection.document_ids[d], g)
        for q, d, g in zip(judged.query, judged.document, judged.grade, strict=True)
        if g > 0
    }


def documents_of(rows):
    return [bytes(comment).decode().split("=")[1].split()[0] for comment in rows.comments]


def test_all_forms_hold_the_same(sample):
    folder, collection = sample
    forms = [
        read_collection("beir", folder=folder / "beir"),
        read_collection(
            "trec",
            documents=folder / "trec" / "documents.trec",
            topics=folder / "trec" / "topics.txt",
            qrels=folder / "trec" / "qrels.txt",
        ),
        read_collection(
            "table",
            documents=folder / "csv" / "documents.csv",
            judgements=folder / "csv" / "ratings.csv",
            document_columns={"id": "id", "title": "title", "body": "text", "url": "url"},
            judgement_columns={"text": "query", "document": "document", "grade": "label"},
            grades={name: grade for grade, name in RATINGS.items()},
        ),
    ]
    assert len(relevant(collection)) > 1000
    for form in forms:
        assert list(form.document_ids) == list(collection.document_ids)
        assert relevant(form) == relevant(collection)
        words = [text.split() for text in form.fields["body"]]
        assert words == [text.split() for text in collection.fields["body"]]
    judged = forms[2].judgements
    not_relevant = np.bincount(judged.query[judged.grade == 0])
    assert not_relevant.sum() > 500
    assert not_relevant.max() == 5


def test_rankings_rows_and_vectors_name_what_is_there(sample):
    folder, collection = sample
    grades = {
        (row.qid, row.docno): row.label
        for row in read_qrels(folder / "trec" / "qrels.txt").itertuples()
    }
    for name in ("bm25", "lsa"):
        run = read_run(folder / "runs" / f"{name}.run")
        assert set(run["qid"]) <= set(collection.query_ids)
        assert set(run["docno"]) <= set(collection.document_ids)
        found = sum((q, d) in grades for q, d in zip(run["qid"], run["docno"], strict=True))
        assert found > len(run) / 10
    training = (folder / "training_queries.txt").read_text().split()
    fold = {
        name: {line.split("\t")[0] for line in (folder / "beir" / "qrels" / f"{name}.tsv").open()}
        for name in ("train", "test")
    }
    tested = set(read_letor(folder / "letor" / "Fold1" / "test.txt").query_ids)
    assert set(training) < fold["train"]
    assert tested <= fold["test"]
    assert fold["train"] & fold["test"] == {"query-id"}
    for name in ("train", "vali", "test"):
        rows = read_letor(folder / "letor" / "Fold1" / f"{name}.txt")
        assert rows.X.shape[1] == 46
        assert (set(rows.query_ids) <= set(training)) == (name == "train")
        rated = zip(rows.y, rows.query_index, documents_of(rows), strict=True)
        assert all(grades.get((rows.query_ids[q], d), 0) == label for label, q, d in rated)
    for name, ids in (("documents", collection.document_ids), ("queries", collection.query_ids)):
        vectors = np.load(folder / "vectors" / f"{name}.npy")
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
        assert (folder / "vectors" / f"{name}.txt").read_text().splitlines() == list(ids)


@pytest.mark.filterwarnings("error")  # no advice that whoever wants a sample cannot follow
def test_the_same_bytes_again_and_nothing_is_overwritten(sample, tmp_path):
    folder, _ = sample
    with threadpool_limits(1, user_api="blas"):  # sums depend on it
        write_sample(tmp_path / "again")
    assert len(contents(folder)) > 20
    assert different(folder, tmp_path / "again") == set()
    with pytest.raises(InputError, match="not empty; name a new folder"):
        write_sample(tmp_path)
