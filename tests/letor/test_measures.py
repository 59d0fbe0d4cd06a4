"""Measures against hand-computed values, the official script's output, ir_measures and twins."""

import math
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import Evaluator, evaluate, side_by_side
from letor.measures import (
    MeasureDefinition,
    choosing_measure,
    conventions,
    official_measures,
    parse_measure,
    run_measure,
)
from letor.trec import run_of


def judged(labels_by_query, document_ids=None):
    """Rows of several queries; labels given best-scored first (see ``falling``)."""
    qids = [q for q, labels in labels_by_query.items() for _ in labels]
    y = [label for labels in labels_by_query.values() for label in labels]
    ids = None if document_ids is None else np.array(document_ids, dtype=object)
    return RankingData.from_rows(np.zeros((len(y), 1)), y, qids, document_ids=ids)


def falling(data):
    return -np.arange(len(data), dtype=float)


def twin(definition, labels, ids):
    """One query by the book. ``labels`` best first after ties are ordered."""
    k = definition.cutoff or len(labels)
    empty = {"zero": 0.0, "one": 1.0, "skip": math.nan}[definition.empty]
    if definition.kind in ("ndcg", "mean_ndcg"):
        if definition.gain == "exponential":
            gains = [2**y - 1 for y in labels]
        elif definition.gain == "linear":
            gains = labels
        else:
            gains = [definition.gain[y] for y in labels]
        if max(gains, default=0) <= 0:
            return empty

        def dcg(values, depth):
            if definition.discount == "log2":
                return sum(g / math.log2(i + 2) for i, g in enumerate(values[:depth]))
            return sum(g / max(math.log2(i + 1), 1) for i, g in enumerate(values[:depth]))

        best = sorted(gains, reverse=True)
        if definition.kind == "mean_ndcg":
            depths = range(1, len(gains) + 1)
            return sum(dcg(gains, j) / dcg(best, j) for j in depths) / len(gains)
        if definition.short == "zero" and k > len(gains):
            return 0.0
        return dcg(gains, k) / dcg(best, k)
    if definition.kind == "err":
        stops = [(2**y - 1) / 2**definition.top_label for y in labels]
        if not any(stops):
            return empty
        return sum(p * math.prod(1 - s for s in stops[:i]) / (i + 1)
                   for i, p in enumerate(stops[:k]))  # fmt: skip
    relevant = [y >= definition.relevant_from for y in labels]
    if not any(relevant):
        return empty
    ranks = [i + 1 for i, r in enumerate(relevant) if r]
    if definition.kind == "ap":
        return sum((j + 1) / r for j, r in enumerate(ranks) if r <= k) / len(ranks)
    if definition.kind == "precision":
        return sum(r <= k for r in ranks) / k
    if definition.kind == "recall":
        return sum(r <= k for r in ranks) / len(ranks)
    return 1 / ranks[0] if ranks[0] <= k else 0.0


def make_definition(kind, cutoff, **values):
    return MeasureDefinition(kind, None if kind == "mean_ndcg" else cutoff, **values)


definitions = st.builds(
    make_definition,
    kind=st.sampled_from(["ndcg", "mean_ndcg", "ap", "precision", "recall", "rr", "err"]),
    cutoff=st.integers(1, 12),
    gain=st.sampled_from(["exponential", "linear", (0.0, 0.5, 0.5, 4.0)]),
    discount=st.sampled_from(["log2", "letor"]),
    empty=st.sampled_from(["zero", "one", "skip"]),
    short=st.sampled_from(["pad", "zero"]),
    relevant_from=st.integers(1, 3),
    ties=st.sampled_from(["input", "docid", "docid-ascending", "worst", "best"]),
    top_label=st.integers(3, 5),
)
rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(-2, 2)), min_size=1,
    max_size=90,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(definitions, rows)
def test_every_definition_equals_its_twin(definition, rows):
    """Rows of a query are scattered, scores tie often, lists are shorter and longer than 32."""
    query, y, score = zip(*rows, strict=True)
    ids = np.array([f"d{(7 * i) % 91:02d}" for i in range(len(rows))], dtype=object)
    data = RankingData.from_rows(np.zeros((len(y), 1)), y, query, document_ids=ids)
    tie_keys = {
        "input": lambda i: 0,
        "docid": lambda i: -int(ids[i][1:]),
        "docid-ascending": lambda i: int(ids[i][1:]),
        "worst": lambda i: y[i],
        "best": lambda i: -y[i],
    }
    key = tie_keys[definition.ties]
    found = Evaluator(definition, data).per_query(score)
    for q, value in zip(data.query_ids, found, strict=True):
        of_query = [i for i in range(len(rows)) if query[i] == q]
        ranked = sorted(of_query, key=lambda i: (-score[i], key(i), i))
        expected = twin(definition, [y[i] for i in ranked], ids)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-15)


def test_ties_in_random_order_give_no_label_away():
    """1,000 queries of equal scores: the first of five rows is relevant by chance, in one of five
    queries with four standard errors of .013, though it is the first in all of them."""
    data = judged({str(q): [1, 0, 0, 0, 0] for q in range(1000)})
    value = Evaluator(choosing_measure("p@1"), data).mean(np.zeros(len(data)))
    assert value == pytest.approx(0.2, abs=0.05)
    assert value == Evaluator(choosing_measure("p@1"), data).mean(np.ones(len(data)))
    assert evaluate(data, np.zeros(len(data)), "p@1")["p@1"].mean() == 1


def test_official_script_by_hand():
    """Eval-Score-4.0.pl on three queries, computed by hand.

    a: labels 1, 0, 2 as ranked: DCG 1, 1, 1 + 3/log2(3); ideal 3, 4, 4; no NDCG@4 and beyond.
    b: no relevant document. c: scores tie, so the order of the lines decides: labels 0, 1.
    """
    data = RankingData.from_rows(
        np.zeros((7, 1)), [2, 1, 0, 0, 0, 0, 1], ["a", "a", "a", "b", "b", "c", "c"]
    )
    scores = [0.1, 0.9, 0.5, 0.3, 0.2, 0.7, 0.7]
    table = evaluate(data, scores, official_measures())
    assert list(table.columns) == [
        *[f"P@{k}" for k in range(1, 11)], "MAP", *[f"NDCG@{k}" for k in range(1, 11)], "MeanNDCG",
    ]  # fmt: skip
    third = (1 + 3 / math.log2(3)) / 4
    a = table.loc["a"]
    np.testing.assert_allclose(a[["P@1", "P@2", "P@3", "P@10"]], [1, 1 / 2, 2 / 3, 2 / 10])
    np.testing.assert_allclose(a["MAP"], (1 + 2 / 3) / 2)
    np.testing.assert_allclose(a[["NDCG@1", "NDCG@2", "NDCG@3"]], [1 / 3, 1 / 4, third])
    assert (a[[f"NDCG@{k}" for k in range(4, 11)]] == 0).all()
    np.testing.assert_allclose(a["MeanNDCG"], (1 / 3 + 1 / 4 + third) / 3)
    assert (table.loc["b"] == 0).all()
    c = table.loc["c"]
    np.testing.assert_allclose(c[["P@1", "P@2", "MAP", "NDCG@1"]], [0, 1 / 2, 1 / 2, 0])
    # Rank 2 is not discounted: the ranking with the only relevant document second is perfect at 2.
    np.testing.assert_allclose(c[["NDCG@2", "NDCG@3", "MeanNDCG"]], [1, 0, 1 / 2])


def test_mslr_script_by_hand():
    """Same formulas, but labels below 2 are not relevant for P and MAP."""
    data = judged({"a": [1, 4, 0, 2]})
    values = evaluate(data, falling(data), official_measures("mslr")).loc["a"]
    np.testing.assert_allclose(values[["P@1", "P@2", "P@4"]], [0, 1 / 2, 1 / 2])
    np.testing.assert_allclose(values["MAP"], (1 / 2 + 2 / 4) / 2)
    np.testing.assert_allclose(values["NDCG@1"], 1 / 15)
    np.testing.assert_allclose(values["NDCG@2"], (1 + 15) / (15 + 3))
    assert values["NDCG@5"] == 0


@pytest.mark.data
@pytest.mark.parametrize("column", [25, 40, 19])
@pytest.mark.parametrize("part", ["S1", "S2", "S3", "S4", "S5"])
def test_official_script_on_mq2008(data_folder, part, column):
    """Every query, every measure and the averages, to the digits that the script prints."""
    folder = data_folder / "letor4_mq2008"
    names, expected = [], {}
    text = (folder / "official_eval" / f"{part}.feature{column}.per_query.tsv").read_text()
    for block in text.strip().split("\n\n"):
        head, *lines = [line.split("\t") for line in block.splitlines()]
        names += head[1:]
        for line in lines:
            expected.setdefault(line[0], []).extend(line[1:])
    scores, labels, query = [], [], []
    for line in (folder / f"{part}.txt").read_text().splitlines():
        fields = line.split()
        labels.append(int(fields[0]))
        query.append(fields[1].removeprefix("qid:"))
        scores.append(float(fields[1 + column].removeprefix(f"{column}:")))
    data = RankingData.from_rows(np.zeros((len(labels), 1)), labels, query)
    table = evaluate(data, scores, official_measures())
    found = {q: [f"{v:.4f}" for v in table.loc[q]] for q in table.index}
    found["Average"] = [f"{v:.4f}" for v in table.mean()]
    assert list(table.columns) == names
    assert found == expected


def test_agrees_with_ir_measures_per_query():
    """trec_eval's rules: gain = label or as given, ties by descending document id."""
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(5)
    n = 600
    query = [f"q{i}" for i in rng.integers(0, 20, n)]
    y = rng.choice([0, 0, 0, 1, 2, 3], n)
    y[[q == "q3" for q in query]] = 0
    ids = np.array([f"doc{i}" for i in rng.permutation(n)], dtype=object)
    score = rng.integers(0, 12, n) / 4
    data = RankingData.from_rows(np.zeros((n, 1)), y, query, document_ids=ids)
    pairs = {
        ir_measures.nDCG @ 10: MeasureDefinition("ndcg", 10, "linear", ties="docid"),
        ir_measures.nDCG: MeasureDefinition("ndcg", None, "linear", ties="docid"),
        ir_measures.nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7}) @ 5: MeasureDefinition(
            "ndcg", 5, ties="docid"
        ),
        ir_measures.AP: MeasureDefinition("ap", ties="docid"),
        ir_measures.AP(rel=2): MeasureDefinition("ap", relevant_from=2, ties="docid"),
        ir_measures.P @ 5: MeasureDefinition("precision", 5, ties="docid"),
        ir_measures.RR: MeasureDefinition("rr", ties="docid"),
    }
    qrels = pd.DataFrame({"query_id": query, "doc_id": ids, "relevance": y})
    run = pd.DataFrame({"query_id": query, "doc_id": ids, "score": score})
    for measure, definition in pairs.items():
        # One at a time: given gains leak into other nDCG measures of the same call.
        values = {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}
        ours = Evaluator(definition, data).per_query(score)
        theirs = [values[q] for q in data.query_ids]
        np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=str(measure))


def test_rows_are_evaluated_per_query_under_the_names_given():
    data = judged({"a": [0, 2, 1], "b": [0, 0]})
    table = evaluate(data, falling(data), ["ndcg@10", "letor4:ndcg@10", MeasureDefinition("ap")])
    assert list(table.columns) == ["ndcg@10", "letor4:ndcg@10", "MAP"]
    assert table["letor4:ndcg@10"].tolist() == [0, 0]
    assert table["MAP"].tolist() == [(1 / 2 + 2 / 3) / 2, 0]
    tied = evaluate(data, np.zeros(5), ["mrr"], ties="worst")
    assert tied["mrr"].tolist() == [0.5, 0]
    for one in ("mrr", MeasureDefinition("rr"), (name for name in ["mrr"])):
        values = evaluate(data, np.zeros(5), one, ties="input")
        assert values.to_numpy().tolist() == [[0.5], [0]]


def test_the_criterion_of_matching_models_is_our_average_precision():
    """``ssi_models`` may not import letor: its kernel is held equal here."""
    from ssi_models.kernels.pair_losses import judged_lists, ranking_measures

    rng = np.random.default_rng(7)
    relevant = rng.random((8, 50)) < 0.2
    relevant[3] = False
    for scores in (rng.random((8, 50)), np.round(rng.random((8, 50)), 1)):
        ap, loss = np.empty(8), np.empty(8)
        ranking_measures(scores, *judged_lists(relevant, np.zeros((8, 50), bool)), ap, loss)
        data = judged({str(i): row for i, row in enumerate(relevant)})
        ours = Evaluator(MeasureDefinition("ap", empty="skip", ties="worst"), data)
        np.testing.assert_allclose(ours.per_query(scores.ravel()), ap, rtol=1e-12)


def test_side_by_side_counts_empty_queries_by_rule():
    data = judged({"a": [0, 2, 1], "b": [0, 0]})
    table = side_by_side(data, falling(data))
    ndcg = table[table["measure"] == "NDCG@10"]
    # The same ranking: 0 for both with the official script (fewer than 10 documents).
    value = 0.5 * (3 / math.log2(3) + 1 / 2) / (3 + 1 / math.log2(3))
    np.testing.assert_allclose(ndcg["value"].iloc[:4], [0, value, value + 0.5, 2 * value])
    assert ndcg["queries"].iloc[:4].tolist() == [2, 2, 2, 1]
    assert (ndcg["empty"] == 1).all()
    named = [row for row in conventions() if row.ties != "docid"]
    assert table["definition"].tolist() == [row.definition for row in named]
    assert "trec_eval, ir_measures" not in set(table["known_as"])  # there are no document ids
    assert not table["definition"].duplicated().any()


def test_definition_says_everything():
    lines = parse_measure("letor4:ndcg@10").definition
    assert lines == (
        "NDCG@10, gain 2^label - 1, discount 1 at ranks 1 and 2, then 1/log2(rank), queries of "
        "fewer than 10 documents count 0, queries without relevant documents count 0, ties in "
        "input order"
    )
    assert parse_measure("MAP").definition == (
        "MAP, relevant from label 1, queries without relevant documents count 0, ties in input "
        "order"
    )
    ranx = [d.definition for d in conventions() if "ranx" in d.known_as]
    assert len(ranx) == 3
    assert all(text.endswith("its sort leaves them, which is not stable: with ties its values "
                             "differ)") for text in ranx)  # fmt: skip
    assert "gain [0.0, 3.0][label]" in MeasureDefinition("ndcg", gain=(0.0, 3.0)).definition


def test_definitions_do_not_change():
    with pytest.raises(FrozenInstanceError):
        parse_measure("ndcg").cutoff = 5


def test_formulas_are_sentences():
    dcg, mean = (parse_measure(name).formula for name in ("ndcg", "letor4:meanndcg"))
    assert dcg.startswith("Sum over ")
    assert mean.startswith("Mean over all cut-offs k = 1, 2, ... of NDCG@k: sum over ")


def test_parse_measure_prefixes():
    assert parse_measure("ndcg@10") == MeasureDefinition("ndcg", 10)
    assert parse_measure("skip:ndcg@5") == MeasureDefinition("ndcg", 5, empty="skip")
    assert parse_measure("NDCG-linear@5") == MeasureDefinition("ndcg", 5, "linear")
    assert parse_measure("one:map") == MeasureDefinition("ap", empty="one")
    assert parse_measure("linear:ndcg") == MeasureDefinition("ndcg", gain="linear")
    assert parse_measure("mslr:p@3") == official_measures("mslr")[2]
    assert parse_measure("letor4:meanndcg") == official_measures()[-1]
    with pytest.raises(InputError, match="'trec:map' is unknown"):
        parse_measure("trec:map")


def test_a_measure_may_say_from_which_label_on_documents_are_relevant():
    """As TREC's deep learning tracks do; the name says so wherever it is shown."""
    assert parse_measure("P(rel=2)@10") == MeasureDefinition("precision", 10, relevant_from=2)
    assert parse_measure("skip:map(rel=3)").relevant_from == 3
    assert run_measure("MAP(rel=2)").name == "MAP(rel=2)"
    assert run_measure("MRR(rel=2)@10").formula.endswith(" Relevant: label 2 or more.")
    assert run_measure("MAP(rel=1)") == run_measure("MAP")
    for name in ("ndcg(rel=2)@10", "err(rel=2)", "mslr:map(rel=2)"):
        with pytest.raises(InputError, match=r"\(rel=2\) is for MAP, P, Recall, MRR"):
            parse_measure(name)
    with pytest.raises(InputError, match=r"'map\(rel=0\)' is unknown"):
        parse_measure("map(rel=0)")
    qrels = pd.DataFrame({"qid": "q", "docno": list("abc"), "label": [1, 2, 3]})
    run = pd.DataFrame({"qid": "q", "docno": list("abcd"), "score": [4.0, 3.0, 2.0, 1.0]})
    values = evaluate(qrels, run, ["MAP", "MAP(rel=2)", "P(rel=2)@2", "MRR(rel=3)"])
    np.testing.assert_allclose(values.loc["q"], [1, (1 / 2 + 2 / 3) / 2, 1 / 2, 1 / 3])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"kind": "hits"}, "kind"),
        ({"kind": "recall"}, "Recall@10"),
        ({"kind": "err", "top_label": 0}, "top_label"),
        ({"kind": "ndcg", "cutoff": 0}, "cutoff"),
        ({"kind": "ndcg", "gain": "log"}, "gain"),
        ({"kind": "ndcg", "gain": (0.0, 2.0, 1.0)}, "not decrease"),
        ({"kind": "ndcg", "gain": (-1.0, 0.0)}, "0 or more"),
        ({"kind": "ndcg", "gain": (0.0, math.nan, 3.0)}, "numbers"),
        ({"kind": "ndcg", "gain": (0.0, math.inf)}, "numbers"),
        ({"kind": "ndcg", "empty": "two"}, "empty"),
        ({"kind": "ap", "ties": "any"}, "ties"),
    ],
)
def test_impossible_definitions_are_refused(arguments, named):
    with pytest.raises(InputError, match=named):
        MeasureDefinition(**arguments)


def test_labels_beyond_the_exponential_gain_are_refused_with_a_measure_that_takes_them():
    data = judged({"1": [4e6, 0]})
    with pytest.raises(InputError, match=r"label 4e\+06 is too large.* as gain, NDCG-linear@10 "):
        evaluate(data, falling(data), ["ndcg@10"])
    assert evaluate(data, falling(data), ["NDCG-linear@10"]).mean().item() == 1


def test_bad_labels_and_scores_are_refused():
    data = judged({"a": [0, -1]})
    with pytest.raises(InputError, match="row 1: -1"):
        Evaluator(MeasureDefinition("ap"), data)
    data = judged({"a": [0, 1330]})
    with pytest.raises(InputError, match="1330 is too large"):
        Evaluator(MeasureDefinition("ndcg"), data)
    with pytest.raises(InputError, match="1001 is too large"):
        Evaluator(MeasureDefinition("ndcg"), judged({"a": [0, 1001]}))
    assert Evaluator(MeasureDefinition("ndcg"), judged({"a": [0, 1000]})).mean([0, 1]) == 1
    with pytest.raises(
        InputError, match=r"1330 is above 4, .*: leave ERR out, map the labels to 0 to 4, or"
    ):
        Evaluator(MeasureDefinition("err"), data)
    with pytest.raises(InputError, match="labels 0 to 1"):
        Evaluator(MeasureDefinition("ndcg", gain=(0.0, 1.0)), data)
    evaluator = Evaluator(MeasureDefinition("ap"), data)
    with pytest.raises(InputError, match=r"shape \(3,\) for 2 rows"):
        evaluator.mean([1, 2, 3])
    with pytest.raises(InputError, match="NaN scores: 1, the first in row 1"):
        evaluator.mean([1, np.nan])
    for run in ({"a": {"d": 1.0}}, pd.DataFrame({"qid": ["a"], "docno": ["d"], "score": [1.0]})):
        with pytest.raises(InputError, match=r"must be 2 numbers, .*; a run is judged by qrels"):
            evaluator.mean(run)
    with pytest.raises(InputError, match="document ids"):
        Evaluator(MeasureDefinition("ap", ties="docid"), data)


def test_scores_in_another_order_than_the_rows_are_refused():
    names = np.array(["a", "b"], object)
    data = RankingData.from_rows([[1.0], [2.0]], [0, 1], ["q", "q"], document_ids=names)
    scores = pd.Series([1.0, 2.0])
    assert evaluate(data, scores, "P@1").iloc[0, 0] == 1
    for use in (evaluate, side_by_side, run_of):
        with pytest.raises(InputError, match=r"scores: .* 0 to 1 \(row 0: 1\).*to_numpy\(\)"):
            use(data, scores.sort_values(ascending=False))


def test_no_query_counts():
    data = judged({"a": [0, 0]})
    assert math.isnan(Evaluator(parse_measure("skip:map"), data).mean([1, 2]))


@pytest.mark.parametrize("size", [1, 15, 16, 17, 33, 100, 257])
def test_rows_are_ranked_as_by_a_stable_sort(size):
    """However many ties there are, and wherever runs of rows end."""
    from letor.rank_sums import rank_rows

    rng = np.random.default_rng(size)
    scores = rng.integers(0, max(2, size // 4), 3 * size).astype(np.float64)
    rows = rng.permutation(3 * size)
    offsets = np.array([0, size, size, 3 * size])
    ranked = rank_rows(scores, rows, offsets)
    for start, stop in pairwise(offsets):
        mine = rows[start:stop]
        expected = mine[np.argsort(-scores[mine], kind="stable")]
        np.testing.assert_array_equal(ranked[start:stop], expected)


def test_rows_of_many_queries_of_all_sizes_are_ranked_as_by_one_sort():
    """With no rows, one, or thousands; with infinite scores; in any order in ``rows``."""
    from letor.rank_sums import rank_rows

    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.integers(0, 40, 15_000), [0, 1, 5000, 0]])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.integers(0, 20, offsets[-1]).astype(np.float64)
    scores[rng.random(len(scores)) < 0.05] = -np.inf
    scores[rng.random(len(scores)) < 0.05] = np.inf
    rows = rng.permutation(offsets[-1])
    query = np.repeat(np.arange(len(sizes)), sizes)
    expected = rows[np.lexsort((-scores[rows], query))]
    np.testing.assert_array_equal(rank_rows(scores, rows, offsets), expected)
    assert rank_rows(scores[:0], rows[:0], np.array([0, 0])).tolist() == []
    assert rank_rows(scores[:0], rows[:0], np.array([0])).tolist() == []
