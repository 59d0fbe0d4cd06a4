"""The real ir_datasets package on small datasets that the test registers."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from letor.errors import InputError
from ltr_features.sources.ir_dataset import document_fields, read_ir_dataset

ir_datasets = pytest.importorskip("ir_datasets", reason="the extra ir-datasets is not installed")


class Article(NamedTuple):
    doc_id: str
    title: str
    abstract: str
    url: str

    def default_text(self):
        return f"{self.title} {self.abstract}"


class Page(NamedTuple):
    doc_id: str
    url: str
    http_headers: str
    body: bytes
    body_content_type: str


@pytest.fixture
def registered():
    """Registers a dataset of two articles, three queries, and judgements; gives its id."""
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericQuery, TrecQrel
    from ir_datasets.indices import PickleLz4FullStore  # noqa: F401 - the package is whole

    articles = [Article("a", "One", "first", "http://a"), Article("b", "Two", "second", "")]

    class Store:
        def get_many(self, wanted):
            return {d.doc_id: d for d in articles if d.doc_id in wanted}

    class Docs(BaseDocs):
        def docs_iter(self):
            return iter(articles)

        def docs_cls(self):
            return Article

        def docs_store(self):
            return Store()

    class Queries(BaseQueries):
        def queries_iter(self):
            return iter([GenericQuery(str(i), f"query {i}") for i in (1, 2, 3)])

        def queries_cls(self):
            return GenericQuery

    class Qrels(BaseQrels):
        def qrels_iter(self):
            return iter([TrecQrel("2", "b", 1, "0"), TrecQrel("1", "b", 0, "0")])

        def qrels_defs(self):
            return {}

    name = "tiny-for-the-test"
    ir_datasets.registry.register(name, ir_datasets.Dataset(Docs(), Queries(), Qrels()))
    ir_datasets.registry.register(f"{name}/docs", ir_datasets.Dataset(Docs()))
    yield name
    for key in (name, f"{name}/docs"):
        del ir_datasets.registry._registered[key]


def test_a_registered_dataset(registered):
    c = read_ir_dataset(registered)
    assert c.document_ids == ["a", "b"]
    assert c.fields == {
        "title": ["One", "Two"],
        "body": ["first", "second"],
        "url": ["http://a", ""],
    }
    assert (c.query_ids, c.query_texts) == (["1", "2"], ["query 1", "query 2"])
    assert c.judgements.grade.tolist() == [0, 1]
    assert c.description["queries without judgement, left out"] == 1


def test_names_and_downloads_that_fail_are_told_in_one_line(registered, monkeypatch, capfd):
    with pytest.raises(InputError, match="no dataset 'vaswanni'; did you mean vaswani"):
        read_ir_dataset("vaswanni")

    def offline(self):
        log = ir_datasets.log.easy()
        log.info("download error: ConnectionError(...). Retrying from start.")
        raise RuntimeError("All download sources failed", [("here", ConnectionError())])

    dataset = ir_datasets.load(registered)
    monkeypatch.setattr(type(dataset.queries_handler()), "queries_iter", offline)
    with pytest.raises(InputError, match=r"downloaded \(All download sources failed\); is this"):
        read_ir_dataset(registered)
    assert "download" not in capfd.readouterr().err


def test_judged_documents_only(registered):
    assert read_ir_dataset(registered, documents="judged").document_ids == ["b"]
    more = read_ir_dataset(registered, documents="judged", extra_documents=["a"])
    assert more.document_ids == ["b", "a"]
    with pytest.raises(InputError, match=r"no document 'z' \(1 of 1 asked for are missing\)"):
        read_ir_dataset(registered, documents="judged", extra_documents=["z"])


def test_what_cannot_be_read_is_named(registered):
    with pytest.raises(InputError, match="ir_datasets has no dataset 'no-such-thing'"):
        read_ir_dataset("no-such-thing")
    with pytest.raises(InputError, match="has no queries, qrels; name a subset"):
        read_ir_dataset(f"{registered}/docs")
    with pytest.raises(InputError, match="extra_documents: all documents are read"):
        read_ir_dataset(registered, extra_documents=["a"])
    with pytest.raises(InputError, match="documents must be 'all' or 'judged'"):
        read_ir_dataset(registered, documents="some")


def test_the_catalogue_has_the_papers_own_case():
    """LETOR 4.0's MQ2008 queries: the dataset is known (its documents need a licence)."""
    assert ir_datasets.load("gov2/trec-mq-2008").has_qrels()


def test_fields_of_web_pages_and_of_other_documents():
    html = b"<title>Tax</title><script>no</script><p>Pay</p>\xff"
    page = Page("GX0", "http://x.gov", "HTTP/1.1 200", html, "text/html")
    fields = document_fields(page)
    assert (fields["title"], fields["url"]) == ("Tax", "http://x.gov")
    assert fields["body"].startswith("Pay")

    class Odd:
        def default_text(self):
            return "all there is"

    assert document_fields(Odd()) == {"body": "all there is"}
