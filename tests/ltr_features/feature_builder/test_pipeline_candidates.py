"""Pipelines find the candidates of a new query as training found those of its queries."""

from __future__ import annotations

import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

from letor.digests import write_digests
from letor.errors import InputError, LetorWarning
from letor.rankers.lambdamart import LambdaMART
from ltr_features import FeatureBuilder, ScoringPipeline
from ltr_features.candidates import choose_candidates
from ltr_features.columns.context import ColumnContext

LETTERS = {"source": "model", "model": "vsm", "terms": "letter-trigrams", "depth": 12}
SOURCES = {"a/letters": LETTERS, "bm25": {"depth": 10}, "lsi": {"depth": 5, "params": {"rank": 3}}}


@pytest.fixture(scope="module")
def served(collection, folds):
    """A pipeline with candidates of several sources."""
    builder = FeatureBuilder(["vsm", "letters"], candidates=SOURCES)
    train, valid, _ = builder.folds(collection, folds)[0]
    ranker = LambdaMART(n_estimators=10, min_data_in_leaf=5).fit(train, valid)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LetorWarning)  # all sources are there in service
        return ScoringPipeline(builder.fit(collection, folds[0].train, folds=folds), ranker)


@pytest.fixture(scope="module")
def folder(served, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "service"
    served.save(path)
    return path


def test_candidates_of_every_query_are_those_of_training(collection, served):
    pairs = choose_candidates(ColumnContext.of(collection), SOURCES).pairs
    sizes = []
    for row, text in enumerate(collection.query_texts):
        expected = [collection.document_ids[i] for i in pairs.document[pairs.query == row]]
        assert served.features.best_documents(text) == expected
        sizes.append(len(expected))
    assert max(sizes) > 12  # of several sources


@pytest.mark.filterwarnings("error::letor.errors.LetorWarning")
def test_a_misspelt_query_is_ranked_after_loading_too(collection, served, folder):
    wrong = "xcomon4 qt1w2q"
    assert len(served.rank(wrong)) == 10
    assert FeatureBuilder(["vsm"]).fit(collection).best_documents(wrong) == []
    loaded = ScoringPipeline.load(folder)
    assert [*loaded.features.searches_] == [*SOURCES]
    for text in (wrong, *collection.query_texts[:4]):
        pd.testing.assert_frame_equal(loaded.rank(text, 50), served.rank(text, 50))
    loaded.save(folder.parent / "again")
    names = sorted(path.name for path in (folder / "features" / "searches").iterdir())
    assert names == ["0.safetensors", "1.safetensors"]
    for name in names:
        first, second = (
            (folder.parent / of / "features" / "searches" / name).read_bytes()
            for of in ("service", "again")
        )
        assert first == second


def test_candidates_are_found_among_added_documents_and_not_among_removed_ones(collection, served):
    text = collection.query_texts[3]
    before = served.features.best_documents(text)
    other = "t2w2 common8 common8"  # without a word of the query
    assert not {*other.split()} & {*text.split()}
    more = served.with_documents(["new", before[1]], {"body": [text, other]})
    found = more.features.best_documents(text)
    assert found[0] == "new"
    assert more.features.best_documents(other)[0] == before[1]  # by its new text
    fewer = more.without_documents(["new", before[0]])
    assert not {"new", before[0]} & {*fewer.features.best_documents(text)}
    assert len(fewer.features.best_documents(text)) >= 12


def test_excluded_documents_leave_their_place_to_others(collection, served):
    text = collection.query_texts[0]
    best = served.features.best_documents(text)
    left = served.features.best_documents(text, excluded=best[:2])
    assert not {*best[:2]} & {*left}
    assert left[:10] == best[2:12]  # of the first source's twelve
    assert len(left) >= 12


def test_sources_without_candidates_of_new_queries_are_named(collection, folds, served, tmp_path):
    sources = {"judged": {}, "letters": LETTERS}
    builder = FeatureBuilder(["vsm", "letters"], candidates=sources).fit(collection)
    with pytest.warns(LetorWarning, match="the candidates of letters, not those of judged, on"):
        pipeline = ScoringPipeline(builder, served.ranker)
    letters = FeatureBuilder(["vsm"], candidates={"letters": LETTERS}).fit(collection)
    text = collection.query_texts[2]
    assert builder.best_documents(text) == letters.best_documents(text)
    pipeline.save(tmp_path / "service")
    with pytest.warns(LetorWarning, match="the candidates of letters, not those of judged"):
        ScoringPipeline.load(tmp_path / "service")


def test_a_pipeline_saved_without_models_of_candidates_says_so(collection, folder, tmp_path):
    """As those of earlier versions are."""
    old = tmp_path / "old"
    shutil.copytree(folder, old)
    shutil.rmtree(old / "features" / "searches")
    described = json.loads((old / "features" / "features.json").read_text())
    assert described.pop("searches") == ["a/letters", "lsi"]
    (old / "features" / "features.json").write_text(json.dumps(described))
    for part in (old / "features", old):
        write_digests(part)
    with pytest.warns(LetorWarning, match="candidates of bm25, not those of a/letters, lsi"):
        loaded = ScoringPipeline.load(old)
    alone = FeatureBuilder(["vsm"], depth=10).fit(collection)
    text = collection.query_texts[2]
    assert loaded.features.best_documents(text) == alone.best_documents(text)


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_damaged_models_of_candidates_are_refused(folder, tmp_path, damage):
    shutil.copytree(folder, tmp_path / "service")
    path = tmp_path / "service" / "features" / "searches" / "1.safetensors"
    if damage == "missing":
        path.unlink()
    else:
        content = np.frombuffer(path.read_bytes(), np.uint8).copy()
        content[-1] ^= 1
        path.write_bytes(content.tobytes())
    with pytest.raises(InputError, match="safetensors"):
        ScoringPipeline.load(tmp_path / "service")
