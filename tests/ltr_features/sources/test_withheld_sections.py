"""What queries are drawn from reaches no column: words, pairs of words and links that are planted
in their sections change nothing, and change everything where they are planted in documents."""

from __future__ import annotations

import random
import re
from inspect import signature

import numpy as np
import pytest
from dumps import dump_xml, page_xml

from letor.errors import InputError
from ltr_features.candidates import choose_candidates
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.given_scores import GIVEN
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.registry import families, family_class, get_family
from ltr_features.columns.trained import TrainedColumn
from ltr_features.entities.build import build_knowledge_base
from ltr_features.feature_table import build_columns
from ltr_features.sources.wikipedia_sections import section_collection
from ltr_features.text.collection_files import load_collection, save_collection
from ltr_features.text.index import TermIndex
from ssi_models.registry import MODELS

N_ARTICLES, N_SECTIONS = 12, 6
#: Where text is planted, by the name of the dump: the lead is section 0.
PLANTED = {"plain": "", "queries": "135", "documents": "24"}
#: Options that keep fits short, given to the families that know them.
SMALL = {"dimension": 8, "epochs": 2}
LINKS = {"w2v-entity", "d2v-entity", "ensan2017", "entity-overlap"}
MODEL_PARAMS = {
    "lsa": {"rank": 8},
    "lsi": {"rank": 8},
    "plsa": {"n_topics": 4},
    "ssi": {"rank": 8, "init": "lsi", "symmetric": True, "max_epochs": 2, "scales": [1.0]},
}
LEARNERS = [
    *(name for name, kind in MODELS.items() if kind.learns_from == "documents"),
    "ssi",
    "query-expansion",
]


def word(*numbers):
    return "w" + "".join(chr(97 + n) for n in numbers)


COMMON = [word(25, 25, i) for i in range(24)]


def pages():
    """Articles whose sections share the article's words and link words of the next article."""
    rng, found = random.Random(0), []
    for a in range(N_ARTICLES):
        after = (a + 1) % N_ARTICLES
        parts = []
        for s in range(N_SECTIONS):
            own = [word(a, i) for i in rng.sample(range(12), 8)]
            linked = [f"[[Subject {after}|{word(after, i)}]]" for i in rng.sample(range(12), 2)]
            common = rng.sample(COMMON, 10)
            heading = f"== Part {s} ==\n" if s else ""
            parts.append(f"{heading}{' '.join([*linked, *own, *common])}\n")
        found.append(page_xml(f"Subject {a}", "".join(parts), page_id=a + 1))
    return found


def planted(page, number, sections):
    """The page with an unknown pair of words in the text and heading of some sections, a link to
    another article by these words, and the sections' own words many times, without links; in
    documents also the words that all articles share, so that they have other words of queries."""
    shared = " ".join(COMMON) if sections == PLANTED["documents"] else ""

    def more(section):
        text = re.sub(r"\[\[[^|]*\|(\w+)\]\]", r"\1", f"{section[2]} {shared}")
        link = f"[[Subject {(number + 5) % N_ARTICLES}|zyxalpha zyxbeta]]"
        return f"== Part {section[1]} zyxalpha ==\n{section[2]} {link} {9 * f'{text} '}\n"

    return re.sub(rf"== Part ([{sections}]) ==\n(.*)\n", more, page)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """The dump as it is, planted where queries are drawn from, and planted in documents."""
    folder, found = tmp_path_factory.mktemp("dumps"), {}
    for name, sections in PLANTED.items():
        texts = [planted(page, a, sections) if sections else page for a, page in enumerate(pages())]
        found[name] = folder / name / "dump.xml"
        found[name].parent.mkdir()
        found[name].write_bytes(dump_xml(texts))
    assert found["queries"].read_bytes().count(b"zyxalpha") == 2 * 3 * N_ARTICLES
    return found


def read(dump):
    return section_collection(dump, words_per_query=4, min_words=10, min_document_frequency=2)


@pytest.fixture(scope="module")
def contexts(dumps):
    made = {}
    for name, dump in dumps.items():
        collection = read(dump)
        made[name] = ColumnContext(collection, TermIndex.build(collection), threads=1)
    return made


def test_a_planted_pair_leaves_the_collection_as_it_is(dumps, tmp_path):
    folders = []
    for name in ("plain", "queries"):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        save_collection(read(dumps[name]), folders[-1])
    files = sorted(path.name for path in folders[0].iterdir())
    assert "links.tsv" in files
    for file in files:
        assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes()
    assert load_collection(folders[0]).withheld is not None
    assert read(dumps["documents"]).query_texts == read(dumps["plain"]).query_texts


def family_of(name, dump):
    """A family, small; one that links entities has the knowledge of the dump."""
    known, given = signature(family_class(name)).parameters, {**SMALL, "dump": str(dump)}
    any_of_its_parts = "options" in known
    return get_family(name, **{k: v for k, v in given.items() if k in known or any_of_its_parts})


@pytest.mark.parametrize("name", [n for n in families() if get_family(n).trained_on != GIVEN])
def test_a_planted_pair_leaves_every_column_as_it_is(name, dumps, contexts):
    found = {}
    for planted_in, context in contexts.items():
        family = family_of(name, dumps[planted_in])
        pairs = choose_candidates(contexts["plain"], 10).pairs
        found[planted_in] = family.compute(context, pairs)
    assert np.ptp(found["plain"], axis=0).any()
    assert found["plain"].tobytes() == found["queries"].tobytes()
    assert found["plain"].tobytes() != found["documents"].tobytes()


@pytest.mark.parametrize("name", LEARNERS)
def test_a_planted_pair_leaves_every_model_as_it_is(name, contexts, tmp_path):
    found = {}
    for planted_in, context in contexts.items():
        recipe = LearnedColumn(name, name, MODEL_PARAMS.get(name, {}))
        column = TrainedColumn(context, recipe, tmp_path / planted_in)
        train = np.arange(context.collection.n_queries // 2)
        found[planted_in] = column(train, choose_candidates(contexts["plain"], 10).pairs)
    assert np.ptp(found["plain"]) > 0
    assert found["plain"].tobytes() == found["queries"].tobytes()
    assert found["plain"].tobytes() != found["documents"].tobytes()


@pytest.mark.parametrize("name", sorted(LINKS))
def test_a_knowledge_base_of_whole_articles_is_refused(name, dumps, contexts, tmp_path):
    """Before any other column is computed."""
    build_knowledge_base(dumps["plain"], tmp_path / "whole")
    families, begun = [get_family("vsm"), get_family(name, knowledge=str(tmp_path / "whole"))], []
    pairs = choose_candidates(contexts["plain"], 10).pairs
    with pytest.raises(InputError, match=r"made of whole articles, .* --no-query-sections"):
        build_columns(contexts["plain"], pairs, families, on_progress=lambda *x: begun.append(x))
    assert not begun
    with pytest.raises(InputError, match="made of whole articles"):
        families[1].compute(contexts["plain"], pairs)


def test_a_knowledge_base_without_query_sections_leaves_columns_as_they_are(
    dumps, contexts, tmp_path
):
    pairs, found = choose_candidates(contexts["plain"], 10).pairs, []
    for name in ("plain", "queries"):
        build_knowledge_base(dumps[name], tmp_path / name, withhold_query_sections=True)
        family = get_family("entity-overlap", knowledge=str(tmp_path / name))
        found.append(family.compute(contexts["plain"], pairs))
    assert np.ptp(found[0])
    assert found[0].tobytes() == found[1].tobytes()
