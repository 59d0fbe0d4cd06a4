"""A model and its copies for parts of the queries: what they see, and what they choose together."""

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from ssi_models import word_weight
from ssi_models.registry import get_model
from ssi_models.training import held_out
from ssi_models.training.held_out import exceeds_noise
from ssi_models.training.preferences import Preferences
from ssi_models.training.run import JointRun
from ssi_models.word_weight import WORD_WEIGHTS

N, TOPICS = 120, 6
QUICK = {
    "ssi": {"rank": 6, "batch_size": 32, "n_negatives": 20},
    "psi": {"rank": 6, "batch_size": 32, "n_negatives": 20},
    "full": {"batch_size": 32, "n_negatives": 20},
    "correlated-hash": {"rank": 6, "batch_size": 32, "n_negatives": 20},
    "s2net": {"rank": 6, "batch_size": 32},
    "opca": {"rank": 6},
    "cl-lsa": {"rank": 6},
    "bltm": {"n_topics": TOPICS},
    "wtm": {},
}
PARTS = [np.arange(p, N, 3) for p in range(3)]


def topics():
    return np.random.default_rng(9).permutation(N) % TOPICS


def problem(noise=False, seed=0):
    """Each text is of one of six topics, queries in words that no document has; with
    ``noise`` judgements have nothing to do with topics."""
    rng = np.random.default_rng(seed)
    topic = topics()
    Q, D = np.zeros((N, 60), np.float32), np.zeros((N, 60), np.float32)
    for i in range(N):
        Q[i, topic[i] * 4 + rng.permutation(4)[:2]] = 12
        D[i, 24 + topic[i] * 4 + rng.permutation(4)[:2]] = 12
        for X in (Q, D):
            X[i, 48:] = rng.integers(9, size=12)  # so that hardly any scores are equal
    same = topic[:, None] == topic
    query, document = np.nonzero(rng.random((N, N)) < (1 / 12 if noise else 0.5 * same))
    return Q, D, query, document


def matrices(name, Q, D):
    if get_model(name).inputs == "counts":
        return sp.csr_matrix(Q), sp.csr_matrix(D)
    return tuple(sp.csr_matrix(X / np.linalg.norm(X, axis=1, keepdims=True)) for X in (Q, D))


def judged(query, document):
    return Preferences.from_pairs(query, document, n_queries=N, n_documents=N)


def fitted(name, query, document, Q, D, threads=1, **options):
    model = get_model(name)(**QUICK[name], threads=threads)
    preferences = judged(query, document)
    return [model, *model.fit_parts(*matrices(name, Q, D), preferences, PARTS, **options)]


def tensors(model):
    return [getattr(model, f"{name}_").tobytes() for name in model.tensors]


def choices_held_fast(name, monkeypatch):
    monkeypatch.setattr(JointRun, "beats_start", lambda self: True)
    counter = iter(range(10**6))
    monkeypatch.setattr(JointRun, "validate", lambda self: float(next(counter)))
    if "batch_size" in QUICK[name]:  # a label is learned from in every epoch
        monkeypatch.setitem(QUICK[name], "max_epochs", 3)


@pytest.mark.parametrize("name", QUICK)
def test_all_models_agree_in_what_was_chosen(name):
    Q, D, query, document = problem()
    models = fitted(name, query, document, Q, D)
    assert len(models) == 4
    of_others = [~np.isin(query, part) for part in PARTS]
    learned = [np.ones(len(query), bool), *of_others]
    for model, own in zip(models, learned, strict=True):
        assert (model.n_pairs_, model.n_queries_) == (own.sum(), len(np.unique(query[own])))
    chosen = {
        (
            getattr(getattr(m, "history_", None), "best_epoch", None),
            getattr(m, "scale_", None),
            getattr(m, "word_weight_", None),
        )
        for m in models
    }
    assert len(chosen) == 1
    # Hashing drops words that no document has, which here are all that tell.
    assert name == "correlated-hash" or not any(
        "does not clearly carry over" in remark for remark in models[0].remarks
    )


@pytest.mark.parametrize("name", QUICK)
def test_no_label_of_a_part_is_in_the_model_that_scores_it(name, monkeypatch):
    """But for the choice of epoch and weights, which is held fast here."""
    choices_held_fast(name, monkeypatch)
    Q, D, query, document = problem()
    of_part = np.isin(query, PARTS[0])
    others = np.where(of_part, (document + 1) % N, document)
    first, second = (
        fitted(name, query, found, Q, D, candidates="relevant") for found in (document, others)
    )
    assert tensors(first[1]) == tensors(second[1])
    assert tensors(first[0]) != tensors(second[0])


@pytest.mark.parametrize("name", QUICK)
def test_no_label_of_a_part_is_known_from_its_reverse(name, monkeypatch):
    """Where queries are documents: here query i is document i."""
    choices_held_fast(name, monkeypatch)
    Q, D, query, document = problem()
    pairs = set(zip(query.tolist(), document.tolist(), strict=True))
    reverse = {(d, q) for q, d in pairs if q in PARTS[0] and d not in PARTS[0]}
    first, second = (
        fitted(name, *np.array(sorted(given)).T, Q, D, candidates="relevant", excluded=np.arange(N))
        for given in (pairs | reverse, pairs - reverse)
    )
    assert (first[1].n_pairs_, first[1].n_queries_) == (second[1].n_pairs_, second[1].n_queries_)
    assert tensors(first[1]) == tensors(second[1])
    assert tensors(first[0]) != tensors(second[0])


@pytest.mark.parametrize("hold_out", ["parts", "queries", "pairs"])
def test_random_links_in_both_directions_teach_nothing(hold_out):
    rng, n = np.random.default_rng(0), 200
    X = np.zeros((n, 300), np.float32)
    for row in X:
        row[rng.choice(300, 10, replace=False)] = 10**-0.5
    one, other = np.array([(i, j) for i in range(n) for j in rng.choice(n, 3) if i != j]).T
    both = np.concatenate([one, other]), np.concatenate([other, one])
    links = Preferences.from_pairs(*both, n_queries=n, n_documents=n)
    X = sp.csr_matrix(X)
    model = get_model("ssi")(rank=20, hold_out=hold_out, symmetric=True, max_epochs=10, threads=1)
    model.fit(X, X, links, excluded=np.arange(n))
    # Where the reverses are learned from, it is .18 to .27.
    assert model.history_.best_validation < 0.1
    two = Preferences.from_pairs([0, 1], [1, 0], n_queries=n, n_documents=n)
    with pytest.raises(ValueError, match="all relevant pairs are held out, as they are or the"):
        model.fit(X, X, two, excluded=np.arange(n))


@pytest.mark.parametrize("name", ["ssi", "s2net", "bltm"])
def test_threads_change_nothing(name):
    Q, D, query, document = problem()
    first, second = (fitted(name, query, document, Q, D, threads=n) for n in (1, 3))
    assert [*map(tensors, first)] == [*map(tensors, second)]


@pytest.mark.parametrize("name", ["ssi", "bltm", "wtm"])
def test_a_killed_fit_goes_on_where_it_was(name, tmp_path):
    Q, D, query, document = problem()
    whole, steps = fitted(name, query, document, Q, D), []

    def kill(line):
        steps.append(line)
        if len(steps) == at:
            raise KeyboardInterrupt

    at = 0
    fitted(name, query, document, Q, D, callback=kill)
    n, at = len(steps), len(steps) - 2
    steps.clear()
    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fitted(name, query, document, Q, D, callback=kill, checkpoint=path)
    at = 0
    again = fitted(name, query, document, Q, D, callback=kill, checkpoint=path)
    assert len(steps) == n
    assert not list(tmp_path.iterdir())
    assert [*map(tensors, whole)] == [*map(tensors, again)]


@pytest.mark.parametrize("name", ["bltm", "wtm"])
def test_the_weights_of_words_are_compared_by_the_scores_themselves(name):
    Q, D, query, document = problem()
    model = fitted(name, query, document, Q, D)[0]
    Q, D = matrices(name, Q[:5], D)
    for weight, scores in zip(WORD_WEIGHTS, model.mixtures(Q, D), strict=True):
        model.lambda2 = weight
        assert scores == pytest.approx(model.cache(D).scores(Q), rel=1e-5)


@pytest.mark.parametrize("name", sorted({*QUICK} - {"correlated-hash"}))
def test_defaults_learn_what_is_there_and_keep_the_start_where_nothing_is(name):
    Q, D, query, document = problem()
    preferences = judged(query, document)
    quick = QUICK[name]
    model = get_model(name)(**quick, threads=1).fit(*matrices(name, Q, D), preferences)
    scores = model.cache(matrices(name, Q, D)[1]).scores(matrices(name, Q, D)[0])
    same = topics()[:, None] == topics()
    best = np.argsort(-scores, axis=1)[:, :5]
    assert np.take_along_axis(same, best, axis=1).mean() > 0.5  # chance: 1 / 6
    assert not any("does not clearly carry over" in remark for remark in model.remarks)

    def is_kept(seed):
        Q, D, query, document = problem(noise=True, seed=seed)
        chance = judged(query, document)
        model = get_model(name)(**quick, threads=1).fit(*matrices(name, Q, D), chance)
        return any("does not clearly carry over" in remark for remark in model.remarks)

    assert len(list(islice(filter(is_kept, range(1, 6)), 3))) == 3  # of five, or of the first


def test_of_many_queries_one_part_is_held_out(monkeypatch):
    monkeypatch.setattr("ssi_models.training.held_out.MANY_QUERIES", 100)
    Q, D, query, document = problem()
    preferences = judged(query, document)
    steps = []
    model = get_model("bltm")(n_topics=TOPICS, iterations=4, threads=1)
    model.fit(*matrices("bltm", Q, D), preferences, callback=steps.append)
    assert len(steps) == 2 * 4  # without a tenth, and with all


def test_better_is_better_beyond_chance():
    rng = np.random.default_rng(0)
    start = rng.random(200)
    assert not exceeds_noise(start, start)
    assert not exceeds_noise(start + rng.normal(0, 0.1, 200) * 1e-9, start + 1e-9)
    assert exceeds_noise(start + 0.1 + rng.normal(0, 0.1, 200), start)
    wins = [exceeds_noise(start + rng.normal(0, 0.1, 200), start) for _ in range(300)]
    assert np.mean(wins) < 0.12
    assert exceeds_noise(np.array([np.nan, 0.4]), np.array([0.1, 0.3]))
    # By hand: mean .675, standard error .625 (of two: half the difference), 1.5 of them .9375.
    assert not exceeds_noise(np.array([1.3, 0.05]), np.zeros(2))
    assert exceeds_noise(np.array([1.3, 0.3]), np.zeros(2))
    assert not exceeds_noise(np.array([0.2]), np.array([0.3]))
    assert not exceeds_noise(np.array([0.3]), np.array([0.3]))


def test_numbers_that_the_documentation_states():
    """docs/models.md: three parts, two for models without epochs, a tenth from 2,000 queries on."""
    assert (held_out.N_PARTS, held_out.MANY_QUERIES) == (3, 2000)
    assert (word_weight._FEW_PARTS, word_weight._MANY_PARTS) == (2, 10)
    assert held_out.mean_value(np.array([np.nan])) == 0
    assert held_out.mean_value(np.array([np.nan, 0.5])) == 0.5


def test_weights_of_words_go_from_none_to_all():
    assert (WORD_WEIGHTS[0], WORD_WEIGHTS[-1]) == (0, 1)
    assert all(a < b for a, b in pairwise(WORD_WEIGHTS))


def test_a_given_weight_is_that_of_all_models():
    Q, D, query, document = problem()
    preferences = judged(query, document)
    model = get_model("cl-lsa")(rank=6, word_weight=0.3)
    copies = model.fit_parts(*matrices("cl-lsa", Q, D), preferences, PARTS)
    assert [one.weight_of_words for one in (model, *copies)] == [0.3] * 4
    assert [one.word_weight_ for one in (model, *copies)] == [0.3] * 4


def test_a_weight_is_left_to_words_unless_it_is_better():
    Q, D, query, document = problem()
    preferences = judged(query, document)
    model = get_model("opca")(rank=6, threads=1)
    model.fit(*matrices("opca", Q, D), preferences)
    assert model.word_weight_ in WORD_WEIGHTS
    assert model.word_weight_ < 1
    fixed = get_model("opca")(rank=6, word_weight=0.25, threads=1)
    assert fixed.fit(*matrices("opca", Q, D), preferences).weight_of_words == 0.25
    one = judged([0, 0], [0, 6])
    alone = get_model("opca")(rank=6, threads=1).fit(*matrices("opca", Q, D), one)
    assert alone.word_weight_ == 0.5
    assert any("by default" in remark for remark in alone.remarks)


def test_judgements_teach_plsa_the_weight_of_words_and_nothing_else():
    D, others = problem()[1], problem(seed=1)[1]  # of the same topics, in the same words
    models = []
    for noise in (False, True):
        *_, query, document = problem(noise)
        preferences = judged(query, document)
        model = get_model("plsa")(n_topics=TOPICS, threads=1)
        copies = model.fit_parts(*matrices("plsa", others, D), preferences, PARTS)
        assert {one.word_weight_ for one in copies} == {model.word_weight_}
        assert {one.phi_q_.tobytes() for one in copies} == {model.phi_q_.tobytes()}
        models.append(model)
    learned, kept = models
    assert learned.word_weight_ < 1
    assert kept.word_weight_ == 1
    assert any("is plain word matching" in remark for remark in kept.remarks)
    alone = get_model("plsa")(n_topics=TOPICS, threads=1).fit(*matrices("plsa", others, D))
    assert alone.word_weight_ == 0.95
    assert alone.phi_q_.tobytes() == learned.phi_q_.tobytes() == kept.phi_q_.tobytes()


@pytest.mark.parametrize("name", ["opca", "cl-lsa"])
def test_two_vocabularies_have_no_words_in_common_to_weigh(name):
    Q, D, query, document = problem()
    preferences = judged(query, document)
    texts = matrices(name, Q[:, :50], D)
    model = get_model(name)(vocabularies="separate", threads=1).fit(*texts, preferences)
    assert model.weight_of_words == model.word_weight_ == 0
    assert model.remarks == []
    few = preferences.only(np.array([0]))
    alone = get_model(name)(vocabularies="separate", threads=1).fit(*texts, few)
    assert not any("word" in remark for remark in alone.remarks)


def test_impossible_parts_are_refused():
    Q, D, query, document = problem()
    preferences = judged(query, document)
    for name in ("ssi", "opca", "lsa"):
        texts = matrices(name, Q, D)
        for parts, message in (
            ([np.arange(N)], "two or more"),
            ([np.arange(4), np.arange(3, 6)], "share a query"),
            ([np.arange(N), np.zeros(0, np.int64)], "no others are left to learn from"),
        ):
            with pytest.raises(ValueError, match=message):
                get_model(name)().fit_parts(*texts, preferences, parts)
    for params, message in (
        ({"warm_start": True}, "warm_start"),
        ({"hold_out": "queries"}, "hold_out='queries': a fold holds out its training queries"),
    ):
        model = get_model("ssi")(max_epochs=1, rank=2, **params)
        with pytest.raises(ValueError, match=message):
            model.fit_parts(*texts, preferences, PARTS)


def test_bad_input_is_told_what_to_do():
    Q, D, query, document = problem()
    preferences = judged(query, document)
    pairs = np.stack([query, document], axis=1)
    texts = matrices("ssi", Q, D)
    for name in QUICK:
        with pytest.raises(TypeError, match=r"Preferences\.from_pairs"):
            get_model(name)().fit(*matrices(name, Q, D), pairs)
    with pytest.raises(ValueError, match="vocabularies='separate'"):
        get_model("opca")().fit(texts[0][:, :40], texts[1], preferences)
    with pytest.raises(ValueError, match=r"Q: row 0 has length .*; unit rows"):
        get_model("ssi")().fit(sp.csr_matrix(Q), texts[1], preferences)


@pytest.mark.parametrize(
    ("name", "options"),
    [("lsi-tfidf", {"rank": 6}),
     ("query-expansion", {}),
     ("hash", {"identity": "mixed", "n_buckets": 700, "max_epochs": 2}),
     ("correlated-hash", {"mixture": True, "rank": 6, "n_features": 20, "max_epochs": 2})],
)  # fmt: skip
def test_all_models_of_a_fold_mix_scores_by_the_same_factor(name, options):
    """Or a column would mean one thing in training rows, another in the others."""
    Q, D, query, document = problem()
    rows = matrices(name, Q, D)
    preferences = judged(query, document)
    kind = get_model(name)
    model = kind(**options, threads=1)
    copies = model.fit_parts(*rows, preferences, PARTS)
    chosen = [[getattr(one, part).tolist() for part in kind.mixed_by] for one in (model, *copies)]
    assert chosen == [chosen[0]] * 4
    if name in ("lsi-tfidf", "query-expansion"):  # others also agree on when to stop
        alone = kind(**options, threads=1).fit(*rows, preferences)
        assert chosen[0] == [getattr(alone, part).tolist() for part in kind.mixed_by]
