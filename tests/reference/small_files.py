"""A small file, or folder of files, of every kind that the program reads: ``MAKERS[kind](folder)``
writes it into an empty folder.

``python tests/reference/small_files.py FOLDER`` writes those whose format is ours and that are not
there yet, each into a folder of its name: what ``tests/stored`` holds of a release.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from beir_folders import write_beir
from dumps import dump_xml, page_xml
from gensim.models import Doc2Vec as GensimDoc2Vec
from gensim.models.doc2vec import TaggedDocument
from knowledge import write_word_knowledge
from safetensors.numpy import save_file
from tables import save_table

from letor.column_names import write_rows
from letor.dataset import RankingData
from letor.missing import Missing
from letor.parquet_parts import write_part
from letor.rankers.registry import get_ranker, load_ranker
from ltr_features.columns.context import make_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.embeddings.doc2vec import Doc2Vec
from ltr_features.embeddings.vectors import WordVectors, unit_rows
from ltr_features.entities.linker import Mention
from ltr_features.entities.replay import save_annotations
from ltr_features.entities.tagme_service import TagmeService
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.scoring import ScoringPipeline
from ltr_features.studies.run import find_experiment
from ltr_features.text.collection import Collection, Judgements, Links
from ltr_features.text.index import TermIndex
from ssi_models.registry import MODELS, get_model, load_model
from ssi_models.training.preferences import Preferences
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

RANKERS = {
    "adarank": {"n_rounds": 3},
    "coordinate-ascent": {"n_restarts": 1, "n_sweeps": 2},
    "lambdamart": {"n_estimators": 3, "min_data_in_leaf": 1},
    "listnet": {"n_epochs": 2},
    "rankboost": {"n_rounds": 5},
    "ranknet": {"n_epochs": 2, "hidden": 3},
    "xgboost": {"n_estimators": 3},
}
#: Settings that keep fits short, given to the models that know them.
_QUICK = {
    "rank": 3, "batch_size": 16, "n_negatives": 8, "max_epochs": 2, "n_buckets": 100, "threads": 1,
    "n_features": 10, "n_weights": 4, "n_topics": 3, "iterations": 2,
}  # fmt: skip
N, WIDTH, TEXTS = 20, 24, ["word1 of word3", "Word2 (word5), word7 and Word2"]
EXPERIMENTS = ("demo", "ssi_keywords", "mq2008", "clickthrough_table1")


def rows() -> RankingData:
    """Forty rows of eight queries, four columns, with comments and names."""
    rng = np.random.default_rng(0)
    X = rng.random((40, 4), dtype=np.float32)
    y = (X[:, 0] > 0.5).astype(np.float32)
    names = np.array([f"GX{i}" for i in range(40)], dtype=object)
    return RankingData.from_rows(
        X, y, np.repeat(np.arange(8), 5), column_names=list("abcd"), document_ids=names
    )


@cache
def collection() -> Collection:
    rng = np.random.default_rng(4)
    words = [[f"word{w}" for w in rng.integers(WIDTH, size=9)] for _ in range(N)]
    query, document = np.nonzero(np.arange(6)[:, None] == np.arange(N) % 6)
    ends = rng.integers(N, size=(2, 30))
    return Collection(
        name="words",
        document_ids=[f"d{i}" for i in range(N)],
        fields={"body": [" ".join(w) for w in words], "title": [" ".join(w[:2]) for w in words]},
        query_ids=[f"q{i}" for i in range(6)],
        query_texts=[f"word{i} word{i + 6} word{i + 12}" for i in range(6)],
        judgements=Judgements(query, document, np.ones(len(query), np.int64)),
        links=Links(*ends[:, ends[0] != ends[1]]),
    )


def matrices(kind: str) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Queries and documents [20, 24] as a model of that kind wants them."""
    rng = np.random.default_rng(3)
    counts = [sp.csr_matrix(rng.poisson(0.4, (N, WIDTH)).astype(np.float32)) for _ in range(2)]
    if MODELS[kind].inputs == "counts":
        return counts[0], counts[1]
    weighting = TfIdf().fit(counts[1])
    return weighting.transform(counts[0]), weighting.transform(counts[1])


def _model(kind: str, folder: Path) -> None:
    known = get_model(kind)().get_params()
    model = get_model(kind)(**{k: v for k, v in _QUICK.items() if k in known})
    pairs = np.unique(np.random.default_rng(2).integers(N, size=(60, 2)), axis=0)
    preferences = Preferences.from_pairs(*pairs.T, n_queries=N, n_documents=N)
    known_words = {"vocabulary": Vocabulary(f"word{i}" for i in range(WIDTH))}
    if model.inputs == "tf-idf":
        known_words["weighting"] = TfIdf.from_idf(np.ones(WIDTH, np.float32))
    model.fit(*matrices(kind), preferences, **known_words)
    model.save(folder / "model.safetensors")


def _ranker(kind: str, folder: Path) -> None:
    get_ranker(kind)(**RANKERS[kind]).fit(rows()).save(folder / "ranker")


def _letor(suffix: str, folder: Path) -> None:
    write_rows(rows(), folder / f"rows{suffix}")


def _folds(folder: Path) -> None:
    for number, part in enumerate(("train", "vali", "test")):
        kept = rows().query_index % 3 == number
        write_rows(rows().select_rows(kept), folder / f"{part}.txt")


def _stored_folds(folder: Path) -> None:
    write_rows(rows(), folder / "columns.parquet")
    values = np.linspace(0, 1, 80, dtype=np.float32).reshape(40, 2)
    for number, part in enumerate(("train", "vali", "test")):
        notes = {"ssi": {"fold": "Fold1"}, "lsi": {}}
        has = rows().query_index % 3 == number
        write_part(folder / "Fold1" / f"{part}.parquet", has, values, notes, Missing({}))


def _table(suffix: str, folder: Path) -> None:
    documents = pd.DataFrame({"id": ["a", "b", "c"], "name": ["red shoe", "blue", "ä red"],
                              "text": ["a shoe", "", "word\nline"]})  # fmt: skip
    judged = pd.DataFrame({"query_id": [1, 1, 2], "document_id": ["a", "b", "c"],
                           "grade": [1, 0, 2], "query": ["red", "red", "blue"]})  # fmt: skip
    for name, frame in (("documents", documents), ("judgements", judged)):
        save_table(frame, folder / f"{name}{suffix}")


def _trec(folder: Path) -> None:
    (folder / "documents.trec").write_text(
        "<DOC>\n<DOCNO> d1 </DOCNO>\n<TITLE>red</TITLE>\n<TEXT>a red shoe &amp; more</TEXT>\n</DOC>"
        "\n<DOC>\n<DOCNO>d2</DOCNO>\n<DOCHDR>\nhttp://x.org/a 1\n</DOCHDR>\n<html><title>t</title>"
        "<body><p>blue</p><script>x</script></body></html>\n</DOC>\n"
    )
    (folder / "topics.txt").write_text(
        "<top>\n<num> Number: 1\n<title> red shoe\n<desc> Description:\nshoes\n<narr> x\n</top>\n"
        "<top>\n<num> Number: 2\n<title> blue\n</top>\n"
    )
    (folder / "qrels.txt").write_text("1 0 d1 1\n1 0 d2 0\n2 0 d2 2\n")


def _topics_xml(folder: Path) -> None:
    _trec(folder)
    (folder / "topics.txt").write_text(
        '<topics>\n<topic number="1"><title>red</title></topic>\n<topic number="2"><query>b</query>'
        "<title>blue &lt;</title></topic></topics>\n"
    )


def _run(folder: Path) -> None:
    lines = [f"q{q} Q0 d{d} {d + 1} {9 - d}.5 tag\n" for q in range(3) for d in range(4)]
    (folder / "bm25.run").write_text("".join(lines))
    qrels = [f"q{q} 0 d{d} {d % 3}\n" for q in range(3) for d in range(4)]
    (folder / "qrels.txt").write_text("".join(qrels))


def _write_lines(folder: Path, **files: list[dict]) -> None:
    """Files of JSON lines by their names."""
    for name, records in files.items():
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines)


def _beir(folder: Path) -> None:
    documents = [{"_id": f"d{i}", "title": "red", "text": f"shoe {i}", "metadata": {"url": "u"}}
                 for i in range(3)]  # fmt: skip
    queries = [{"_id": f"q{i}", "text": f"red {i}"} for i in range(2)]
    write_beir(folder, documents, queries, test="q0\td1\t1\nq1\td2\t2\n")


def _experiment(name: str, folder: Path) -> None:
    (folder / "experiment.toml").write_bytes(find_experiment(name).read_bytes())


def _index(folder: Path) -> None:
    TermIndex.build(collection()).save(folder / "index")


def _workspace(folder: Path) -> None:
    make_workspace(collection(), folder / "workspace")


def _knowledge(folder: Path) -> None:
    write_word_knowledge(folder)
    (folder / "dump.xml").unlink()


def _dump(folder: Path) -> None:
    text = (
        "'''A''' is a [[b|c]] {{t|x}} [[File:f.png|thumb|caption]]\n== h ==\n* one <ref>r</ref>\n"
        "{|\n| cell\n|}\n<math>x</math> &amp; <!-- no -->"
    )
    pages = [page_xml("A", text, page_id=1), page_xml("B", redirect="A", page_id=2)]
    (folder / "dump.xml").write_bytes(dump_xml(pages))


def _vectors() -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(5)
    return [f"word{i}" for i in range(12)], rng.normal(size=(12, 4)).astype(np.float32)


def _text_vectors(folder: Path, *, header: bool) -> None:
    names, numbers = _vectors()
    lines = [f"{n} {' '.join(f'{x:.4f}' for x in row)}\n" for n, row in zip(names, numbers)]  # noqa: B905
    (folder / "vectors.txt").write_text(("12 4\n" if header else "") + "".join(lines))


def _binary_vectors(folder: Path) -> None:
    names, numbers = _vectors()
    parts = [f"{n} ".encode() + row.astype("<f4").tobytes() + b"\n"
             for n, row in zip(names, numbers, strict=True)]  # fmt: skip
    (folder / "vectors.bin").write_bytes(b"12 4\n" + b"".join(parts))


def _own_vectors(folder: Path) -> None:
    names, numbers = _vectors()
    WordVectors(Vocabulary(names), unit_rows(numbers), "a test").save(folder / "v.safetensors")


def _id_vectors(suffix: str, folder: Path) -> None:
    names, numbers = _vectors()
    path = folder / f"vectors{suffix}"
    (folder / "vectors.txt").write_text("".join(f"{name}\n" for name in names))
    if suffix == ".npy":
        np.save(path, numbers)
    elif suffix == ".npz":
        sp.save_npz(path, sp.csr_matrix(np.where(numbers > 0, numbers, 0)))
    elif suffix == ".safetensors":
        save_file({"vectors": numbers}, path)
    else:
        pq.write_table(pa.table({"id": names, "vector": numbers.tolist()}), path)


def _doc2vec(folder: Path, *, hs: int) -> None:
    texts = [text.split() for text in collection().fields["body"]]
    tagged = [TaggedDocument(text, [row]) for row, text in enumerate(texts)]
    model = GensimDoc2Vec(tagged, dm=0, vector_size=4, min_count=1, epochs=2, seed=1, workers=1,
                          hs=hs, negative=0 if hs else 3)  # fmt: skip
    Doc2Vec.from_gensim(model, source="a test").save(folder / "model.safetensors")


def _scores(suffix: str, folder: Path) -> None:
    frame = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["a", "b", "a"],
                          "bm25": [1.5, 2.0, -3.25], "dense": [0.5, 0.25, 1e-3]})  # fmt: skip
    save_table(frame, folder / f"scores{suffix}")


def _clicks(suffix: str, folder: Path) -> None:
    log = [(f"s{s}", f"query {s % 3}", f"d{d}", d + 1, int(d == s % 4), f"2024-05-0{s + 1}T10:00")
           for s in range(6) for d in range(4)]  # fmt: skip
    columns = ["session", "query", "document", "position", "clicked", "time"]
    save_table(pd.DataFrame(log, columns=columns), folder / f"log{suffix}")


def _click_counts(folder: Path) -> None:
    log = [(f"query {q}", f"d{d}", d + 1, 10, d) for q in range(3) for d in range(4)]
    columns = ["query", "document", "position", "shown", "clicked"]
    save_table(pd.DataFrame(log, columns=columns), folder / "log.tsv")


def _ubi(folder: Path) -> None:
    queries = [{"query_id": str(q), "user_query": f"shoe {q}", "client_id": "c",
                "timestamp": "2024-05-01T10:00:00Z", "query_response_hit_ids": ["a", "b", "c"]}
               for q in range(4)]  # fmt: skip
    events = [{"query_id": str(q), "action_name": "click", "timestamp": "2024-05-01T10:00:05Z",
               "event_attributes": {"object": {"object_id": "b"}}} for q in range(4)]  # fmt: skip
    _write_lines(folder, queries=queries, events=events)


def _tagme(folder: Path) -> None:
    service = TagmeService(folder / "answers.sqlite")
    with closing(service._open()) as store, store:
        for text in TEXTS:
            answer = json.dumps([[0, 5, "Word1", 0.5, 0.25], [6, 8, "Of", 0.125, 0.5]])
            store.execute("INSERT INTO answers VALUES (?, ?)", (service._key(text), answer))


def _annotations(folder: Path) -> None:
    mentions = [[Mention(0, 5, "Word1", 0.5, 0.25)], []]
    save_annotations(folder / "annotations.jsonl", TEXTS, mentions)


def _pipeline(folder: Path) -> None:
    query = collection().judgements.query
    ids = collection().query_ids
    models = [LearnedColumn("lsa", "lsa", params={"rank": 3})]
    features = FeatureBuilder(["letor46", "vsm"], models, progress=False, threads=1)
    features.fit(collection(), ids)
    frame = pd.DataFrame({
        "qid": [ids[q] for q in range(6) for _ in range(N)],
        "query": [collection().query_texts[q] for q in range(6) for _ in range(N)],
        "docno": collection().document_ids * 6,
    })  # fmt: skip
    X = features.matrix(frame)
    y = np.zeros(len(X), np.float32)
    y[query * N + collection().judgements.document] = 1
    data = RankingData.from_rows(X, y, frame["qid"], column_names=features.column_names)
    ranker = get_ranker("lambdamart")(**RANKERS["lambdamart"]).fit(data)
    pipeline = ScoringPipeline(features, ranker)
    pipeline = pipeline.with_documents(["d1", "new"], {"body": ["word1 word3", "word5 unknown"]})
    pipeline.save(folder / "pipeline")


#: Formats that are ours: each has a version.
OURS: dict[str, Callable[[Path], None]] = {
    **{f"ranker {kind}": partial(_ranker, kind) for kind in RANKERS},
    **{f"model {kind}": partial(_model, kind) for kind in MODELS},
    "letor parquet": partial(_letor, ".parquet"),
    "index": _index,
    "workspace": _workspace,
    "knowledge base": _knowledge,
    "vectors own": _own_vectors,
    "doc2vec": partial(_doc2vec, hs=0),
    "doc2vec tree": partial(_doc2vec, hs=1),
    "annotations": _annotations,
    "pipeline": _pipeline,
}
MAKERS: dict[str, Callable[[Path], None]] = {
    **OURS,
    "letor": partial(_letor, ".txt"),
    "letor gz": partial(_letor, ".txt.gz"),
    "folds": _folds,
    "folds parquet": _stored_folds,
    **{f"table {s}": partial(_table, f".{s}") for s in ("csv", "tsv", "jsonl", "parquet")},
    "trec": _trec,
    "topics xml": _topics_xml,
    "run": _run,
    "beir": _beir,
    **{f"experiment {name}": partial(_experiment, name) for name in EXPERIMENTS},
    "wikipedia dump": _dump,
    "vectors glove": partial(_text_vectors, header=False),
    "vectors text": partial(_text_vectors, header=True),
    "vectors binary": _binary_vectors,
    **{f"vectors {s}": partial(_id_vectors, f".{s}")
       for s in ("npy", "npz", "safetensors", "parquet")},
    **{f"scores {s}": partial(_scores, f".{s}") for s in ("csv", "tsv", "jsonl", "parquet")},
    **{f"clicks {s}": partial(_clicks, f".{s}") for s in ("csv", "jsonl", "parquet")},
    "click counts": _click_counts,
    "ubi": _ubi,
    "tagme cache": _tagme,
}  # fmt: skip


def make(kind: str, folder: Path) -> Path:
    """Write what is of that kind into a new folder."""
    folder.mkdir(parents=True)
    MAKERS[kind](folder)
    return folder


def scores_of(kind: str, folder: Path) -> np.ndarray | None:
    """What a ranker or model that :func:`make` wrote says of the rows or texts here."""
    if kind.startswith("ranker "):
        return load_ranker(folder / "ranker").predict(rows())
    if kind.startswith("model "):
        n = np.arange(N)
        return load_model(folder / "model.safetensors").score(*matrices(kind[6:]), n, n[::-1])
    return None


if __name__ == "__main__":
    folders = {name: Path(sys.argv[1]) / name.replace(" ", "-") for name in OURS}
    for name in (name for name, folder in folders.items() if not folder.exists()):
        made = make(name, folders[name])
        scores = scores_of(name, made)
        if scores is not None:
            np.save(made / "scores.npy", scores)
