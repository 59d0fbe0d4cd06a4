import json
import math
import random
import shutil
import unicodedata

import numpy as np
import pytest
from dumps import dump_xml, page_xml
from hypothesis import given, settings
from hypothesis import strategies as st
from knowledge import in_links, make_knowledge, phrase, word_knowledge

from letor.errors import InputError
from ltr_features.entities.build import build_knowledge_base
from ltr_features.entities.knowledge import KnowledgeBase
from ltr_features.entities.linker import EntityLinker
from ltr_features.entities.wikipedia_linker import WikipediaLinker
from ltr_features.entities.words import hash_phrases, hash_words, word_lines, word_spans
from ltr_features.kernels.entities import InLinks, relatedness
from ltr_features.sources.wikipedia import (
    Article,
    Redirect,
    excerpt_path,
    read_dump,
    resolve_redirect,
)


def test_relatedness_is_milne_and_wittens(base):
    cat, animal = base.rows(["Cat", "Jaguar (animal)"])
    a, b = set(in_links(base, "Cat")), set(in_links(base, "Jaguar (animal)"))
    expected = 1 - (math.log(max(len(a), len(b))) - math.log(len(a & b))) / (
        math.log(6) - math.log(min(len(a), len(b)))
    )
    links = InLinks(base.link_ends, base.link_sources, len(base))
    assert relatedness(links, cat, animal) == pytest.approx(max(0, expected))
    assert relatedness(links, cat, cat) == 1


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_common_in_links_equal_set_intersection(a, b):
    ends = np.array([0, len(a), len(a) + len(b)], dtype=np.int64)
    sources = np.array(sorted(a) + sorted(b), dtype=np.int32)
    value = relatedness(InLinks(ends, sources, 100), 0, 1)
    expected = 0.0
    if a & b:
        sizes = sorted([len(a), len(b)])
        expected = 1 - math.log(sizes[1] / len(a & b)) / math.log(100 / sizes[0])
    assert value == pytest.approx(max(0.0, expected), abs=1e-12)


def test_the_context_chooses_the_sense(base):
    linker = WikipediaLinker(base.path)
    animal, car = linker.link(["the cat and the jaguar", "a Jaguar is a motor car"])
    assert [m.entity for m in animal] == ["Cat", "Jaguar (animal)"]
    assert "Jaguar Cars" in [m.entity for m in car]
    (alone,) = linker.link(["jaguar"])[0]
    assert (alone.start, alone.end, alone.entity) == (0, 6, "Jaguar (animal)")
    assert alone.link_probability == pytest.approx(6 / 8)
    assert alone.rho == pytest.approx(alone.link_probability / 2)
    assert alone.commonness == pytest.approx(4 / 6)
    for least, n in ((4 / 6, 1), (0.67, 0)):
        assert len(WikipediaLinker(base.path, min_commonness=least).link(["jaguar"])[0]) == n
    assert isinstance(linker, EntityLinker)


@pytest.mark.parametrize(("text", "spans"), [("", [(0, 8), (4, 8)]), ("york and york", [(0, 8)])])
def test_a_phrase_inside_another_is_dropped_if_it_is_less_often_a_link(tmp_path, text, spans):
    """ "york" is always a link, too, or in two of three places."""
    pages = [
        page_xml("New York", "The old one is [[York]].", page_id=1),
        page_xml("York", f"A city. {text}", page_id=2),
    ]
    (mentions,) = WikipediaLinker(make_knowledge(tmp_path, pages)).link(["new york"])
    assert [(m.start, m.end) for m in mentions] == spans


@pytest.fixture(scope="module")
def ambiguous(tmp_path_factory):
    """Eight words, each of which leads to several of twelve articles and is not always a link."""
    rng = random.Random(0)
    pages = [
        page_xml(
            f"A{i}",
            " ".join(f"[[A{rng.randrange(12)}|w{rng.randrange(8)}]]" for _ in range(9))
            + "".join(f" w{rng.randrange(8)}" for _ in range(6)),
            page_id=i + 1,
        )
        for i in range(12)
    ]
    return KnowledgeBase.open(make_knowledge(tmp_path_factory.mktemp("ambiguous"), pages))


def tagme(base, words, least_probability, least_commonness, epsilon, window):
    """Entity and rho of each word that is a mention, by the paper's formulas."""
    rows = {title: row for row, title in enumerate(base.titles)}
    links = InLinks(base.link_ends, base.link_sources, len(base))
    found = [phrase(base, word) for word in words]
    found = [one for one in found if one[0] / one[1] >= least_probability]
    senses = [
        {e: n / total for e, n in of.items() if n / total >= least_commonness}
        for total, _, of in found
    ]

    def related(a, b):
        return relatedness(links, rows[a], rows[b])

    def others(i):
        return [j for j in range(len(found)) if 0 < abs(i - j) <= window and senses[j]]

    chosen = []
    for i, mine in enumerate(senses):
        votes = {
            a: sum(
                sum(c * related(a, b) for b, c in senses[j].items()) / len(senses[j])
                for j in others(i)
            )
            for a in mine
        }
        near = [a for a in votes if votes[a] >= (1 - epsilon) * max(votes.values())]
        chosen.append(near[0] if near else None)  # the most common sense comes first
    result = []
    for i, entity in enumerate(chosen):
        if entity is not None:
            near = [related(entity, chosen[j]) for j in others(i)]
            coherence = sum(near) / len(near) if near else 0
            result.append((entity, (found[i][0] / found[i][1] + coherence) / 2))
    return result


@pytest.mark.parametrize(
    "options", [(0.02, 0.02, 0.3, 10), (0.5, 0.02, 0.3, 1), (0.02, 0.12, 0.0, 2)]
)
def test_mentions_are_those_of_the_paper_s_formulas(ambiguous, options):
    rng, linker = random.Random(1), WikipediaLinker(ambiguous.path, *options)
    texts = [[f"w{rng.randrange(8)}" for _ in range(2 + n % 13)] for n in range(60)]
    linked = [linker.link([" ".join(words)])[0] for words in texts]
    for words, mentions in zip(texts, linked, strict=True):
        expected = tagme(ambiguous, words, *options)
        assert [m.entity for m in mentions] == [entity for entity, _ in expected]
        assert [m.rho for m in mentions] == pytest.approx([rho for _, rho in expected])
    assert len({m.entity for mentions in linked for m in mentions}) > 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="jagurct JAR,\n\u00e9\U0001f98a_", max_size=40), max_size=4))
def test_any_text_gives_ordered_spans_and_scores_in_range(base, texts):
    texts = [*texts, "cat jaguar car " * 3]
    linked = WikipediaLinker(base.path, threads=1).link(texts)
    for text, mentions in zip(texts, linked, strict=True):
        assert [m.start for m in mentions] == sorted(m.start for m in mentions)
        for m in mentions:
            assert 0 <= m.start < m.end <= len(text)
            assert 0 <= m.rho <= 1
            assert 0 < m.link_probability <= 1
            assert 0 < m.commonness <= 1
        assert WikipediaLinker(base.path, threads=1).link([text])[0] == mentions


def test_threads_and_batches_do_not_matter():
    rng = random.Random(0)
    texts = [" ".join(f"word{rng.randrange(30)}" for _ in range(12)) for _ in range(600)]
    one = WikipediaLinker(word_knowledge(), threads=1).link(texts)
    assert one == WikipediaLinker(word_knowledge(), threads=2).link(texts)
    assert one[500:] == WikipediaLinker(word_knowledge()).link(texts[500:])
    assert sum(map(len, one)) > 600


def test_words_are_runs_of_letters_and_digits():
    words = hash_words(word_lines(["Stra\u00dfe, don't_x", "STRASSE DON T X"]))
    a, b = words.reshape(2, -1)
    np.testing.assert_array_equal(a, b)
    assert a[-1] == 0
    assert hash_phrases(word_lines(["", "a b c d e f g", "\n"])).tolist() == [0, 0, 0]


@pytest.fixture(scope="module")
def excerpt():
    records = list(read_dump(excerpt_path()))
    articles = [r for r in records if isinstance(r, Article)]
    return articles, {r.title: r.target for r in records if isinstance(r, Redirect)}


def gold(section, article, redirects, titles):
    links = {}
    for link in section.links:
        target = resolve_redirect(link.target, redirects)
        if target in titles and target != article.title:
            links[link.start, link.start + len(link.anchor)] = target
    return links


def held_out_figures(excerpt, folder, folds=3):
    """Links of articles whose text and links were left out: all, found as mentions, right; and
    mentions of what the article links to a page that the knowledge base lacks."""
    articles, redirects = excerpt
    titles = {a.title for a in articles}
    total = found = right = unknown = 0
    for fold in range(folds):
        out = articles[fold::folds]
        build_knowledge_base(excerpt_path(), folder / "kb", held_out=[a.title for a in out])
        linker = WikipediaLinker(folder / "kb")
        pairs = [(a, s) for a in out for s in a.sections]
        linked = linker.link([section.text for _, section in pairs])
        for (article, section), mentions in zip(pairs, linked, strict=True):
            spans = {(m.start, m.end): m.entity for m in mentions}
            for span, target in gold(section, article, redirects, titles).items():
                total += 1
                found += span in spans
                right += spans.get(span) == target
            places = {(link.start, link.start + len(link.anchor)) for link in section.links}
            known = gold(section, article, redirects, titles)
            unknown += sum(
                span in places and span not in known and entity != article.title
                for span, entity in spans.items()
            )
    return total, found, right, unknown


def test_held_out_links_of_the_excerpt_lead_where_the_article_leads(excerpt, tmp_path):
    assert held_out_figures(excerpt, tmp_path) == (107, 54, 54, 6)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.text(
            st.characters(codec="utf-8") | st.sampled_from("東とタ\u0301\u00ad\u200ba."),
            max_size=20,
        ),
        max_size=4,
    ),
    st.sampled_from([1, 2]),
)
def test_words_of_a_line_are_those_of_the_text(texts, rule):
    lines = word_lines(texts, rule).decode().split("\n")[:-1]
    found = [[text[begin:end] for begin, end in word_spans(text, rule)] for text in texts]
    expected = [
        ["".join(c for c in word if unicodedata.category(c) != "Cf").casefold() for word in words]
        for words in found
    ]
    assert [[word for word in line.split(" ") if word] for line in lines] == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("दिल्ली की", ["दिल्ली", "की"]),  # vowels are marks
        ("กรุงเทพ", ["กรุงเทพ"]),
        ("مِصْر", ["مِصْر"]),
        ("Stadt\u00adbewohner, e\u0301", ["stadtbewohner", "e\u0301"]),
        ("می\u200cروم a\u200bb", ["میروم", "a", "b"]),
        ("東京タワーは1958年", ["東", "京", "タワー", "は", "1958", "年"]),
        ("葛\U000e0100城", ["葛\U000e0100", "城"]),
    ],
)
def test_words_of_many_scripts(text, words):
    assert word_lines([text]).decode().split() == words
    assert len(word_spans(text)) == len(words)


JAPANESE = [
    page_xml("東京都", "東京都は[[日本]]の[[首都]]である。", page_id=1),
    page_xml("日本", "首都は[[東京都|東京]]。", page_id=2),
    page_xml("首都", "[[日本]]の首都は[[東京都]]。", page_id=3),
]


def test_japanese_is_linked_without_spaces(tmp_path):
    text = "観光で日本の首都へ"
    linked = WikipediaLinker(make_knowledge(tmp_path, JAPANESE)).link([text, "タイの首都圏"])
    assert [(text[m.start : m.end], m.entity) for m in linked[0]] == [
        ("日本", "日本"), ("首都", "首都"),
    ]  # fmt: skip
    assert [(m.start, m.end) for m in linked[1]] == [(3, 5)]


def test_knowledge_bases_of_another_rule_of_words_are_linked_by_theirs(base, tmp_path):
    shutil.copytree(base.path, tmp_path / "kb")
    mark = tmp_path / "kb" / "knowledge.json"
    facts = json.loads(mark.read_text())
    assert facts.pop("word rule") == 2
    text = "jaguar\u00adcar"
    assert WikipediaLinker(tmp_path / "kb").link([text]) == [[]]
    mark.write_text(json.dumps(facts))
    assert [m.end for m in WikipediaLinker(tmp_path / "kb").link([text])[0]] == [6, 10]


def test_bad_input_is_named(tmp_path, base):
    (tmp_path / "d.xml").write_bytes(dump_xml([page_xml("A", redirect="B")]))
    with pytest.raises(InputError, match="no article in it"):
        build_knowledge_base(tmp_path / "d.xml", tmp_path / "kb")
    assert not (tmp_path / "kb").exists()
    with pytest.raises(InputError, match="is not empty and holds no knowledge base"):
        build_knowledge_base(tmp_path / "d.xml", tmp_path)
    with pytest.raises(InputError, match="is not a knowledge base; make one with"):
        WikipediaLinker(tmp_path)
    with pytest.raises(InputError, match=r"wikipedia .*d\.xml --out kb$"):
        WikipediaLinker(tmp_path / "d.xml")
    with pytest.raises(InputError, match="epsilon must lie between 0 and 1, got 2"):
        WikipediaLinker(base.path, epsilon=2)
    damaged = tmp_path / "damaged"
    shutil.copytree(base.path, damaged)
    (damaged / "sense_ends.npy").write_bytes((base.path / "sense_ends.npy").read_bytes()[:-8])
    with pytest.raises(InputError, match=r"sense_ends\.npy: .*damaged"):
        KnowledgeBase.open(damaged)


def test_decomposed_letters_are_found_as_composed_ones(tmp_path):
    dump = [page_xml("Größe", "[[Größe]]", page_id=1), page_xml("B", "[[Größe]]", page_id=2)]
    linker = WikipediaLinker(make_knowledge(tmp_path, dump))
    composed, decomposed = linker.link(["die größe", "die gro\u0308ße"])
    assert [m.entity for m in composed] == ["Größe"]
    assert decomposed == composed
