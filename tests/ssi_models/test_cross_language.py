"""SSI between two vocabularies, with and without a monolingual task."""

import numpy as np
import pytest
import scipy.sparse as sp
from pair_data import killing, run_of_one_epoch

from ssi_models.matrices import check_csr
from ssi_models.persistence import load_tensors, save_tensors
from ssi_models.projections.lsa import CLLSA
from ssi_models.remarks import LATENT
from ssi_models.s2net.model import S2Net
from ssi_models.ssi.cross_language import INITS, CrossLanguageSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.training.preferences import Preferences
from ssi_models.training.towers import UnitLength

QUICK = {"batch_size": 32, "n_negatives": 16, "max_epochs": 4, "threads": 1, "hold_out": "queries"}


def two_languages(n=60):
    """Queries and documents about the same topics, without a common word."""
    rng = np.random.default_rng(0)
    topic = np.arange(n) % 6
    Q, D = np.zeros((n, 12), np.float32), np.zeros((n, 18), np.float32)
    for i in range(n):
        Q[i, topic[i] * 2 + rng.integers(2)] = 1
        D[i, topic[i] * 3 + rng.integers(3, size=2)] = 1
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    query, document = np.nonzero((topic[:, None] == topic) & (rng.random((n, n)) < 0.3))
    pairs = Preferences.from_pairs(query, document, n_queries=n, n_documents=n)
    own = Preferences.from_pairs(
        *np.nonzero((topic[:, None] == topic) & ~np.eye(n, dtype=bool)),
        n_queries=n,
        n_documents=n,
    )
    return sp.csr_matrix(Q), sp.csr_matrix(D), pairs, own


@pytest.mark.parametrize("task", [None, "both", "documents"])
def test_languages_are_matched(task):
    Q, D, pairs, own = two_languages()
    options = {} if task is None else {"monolingual": (D, own)}
    quick = {**QUICK, "max_epochs": 60, "init": "normal", "margin": 1.0}
    model = CrossLanguageSSI(6, sharing=task or "both", **quick)
    model.fit(Q, D, pairs, **options)
    assert (model.n_query_words_, model.n_words_) == (12, 18)
    history = model.history_
    assert history.best_validation > 1.5 * history.epochs[0].validation
    # Query words 2i, 2i + 1 and document words 3i..3i + 2 are of topic i.
    assert sum(model.nearest_words(s, 1)[0][0] // 3 == s // 2 for s in range(12)) >= 8
    assert model._monolingual is None


@pytest.mark.parametrize("unit", [True, False])
def test_scores_are_those_of_the_formula(unit):
    Q, D, pairs, _ = two_languages()
    D[7] = 0  # a document without words
    model = CrossLanguageSSI(4, unit_documents=unit, **QUICK).fit(Q, check_csr("D", D), pairs)
    E = D @ model.V_
    if unit:
        E /= np.maximum(np.linalg.norm(E, axis=1, keepdims=True), 1e-20)
    query, document = np.divmod(np.arange(60 * 60), 60)
    found = model.score(Q, D, query, document).reshape(60, 60)
    np.testing.assert_allclose(found, (Q @ model.U_) @ E.T, atol=1e-6)


def test_the_start_ranks_as_cross_language_lsa():
    Q, D, pairs, _ = two_languages()
    start = CrossLanguageSSI(4, max_epochs=0, threads=1).fit(Q, D, pairs)
    lsa = CLLSA(4, vocabularies="separate").fit(Q, D, pairs)
    query, document = np.divmod(np.arange(60 * 60), 60)
    dots, cosines = (m.score(Q, D, query, document).reshape(60, 60) for m in (start, lsa))
    lengths = np.linalg.norm(Q @ start.U_, axis=1, keepdims=True)  # the same for all documents
    np.testing.assert_allclose(dots, lengths * cosines, atol=1e-5)


def with_word(X, column):
    """Unit rows with one more word."""
    wider = np.hstack([X.toarray(), column])
    return sp.csr_matrix(wider / np.linalg.norm(wider, axis=1, keepdims=True))


@pytest.mark.parametrize("task", [None, "both", "documents"])
@pytest.mark.parametrize("init", INITS)
def test_words_of_no_training_pair_add_nothing_to_scores(init, task):
    Q, D, pairs, own = two_languages()
    known, known_own = (
        p.pairs(np.flatnonzero((p.query < 40) & (p.document < 40))) for p in (pairs, own)
    )
    unpaired = (np.arange(60)[:, None] >= 40).astype(np.float32)
    Q, D = (with_word(X, unpaired) for X in (Q, D))
    options = {} if task is None else {"monolingual": (D, known_own)}
    model = CrossLanguageSSI(4, init=init, sharing=task or "both", **QUICK)
    model.fit(Q, D, known, candidates=np.arange(40), **options)
    assert model.U_[:12].any(axis=1).all()
    assert model.V_[:18].any(axis=1).all()
    assert not model.U_[12].any()
    assert not model.V_[18].any()


def test_the_better_start_is_kept():
    Q, D, pairs, _ = two_languages()
    fitted = {i: CrossLanguageSSI(4, init=i, **QUICK).fit(Q, D, pairs) for i in (*INITS, "auto")}
    chosen = fitted["auto"]
    assert chosen.init_ in INITS
    assert chosen.V_.tobytes() == fitted[chosen.init_].V_.tobytes()
    assert chosen.history_.best_validation >= fitted["cl-lsa"].history_.best_validation


def test_a_warm_start_keeps_where_training_started():
    Q, D, pairs, _ = two_languages()
    model = CrossLanguageSSI(4, init="auto", **QUICK, warm_start=True).fit(Q, D, pairs)
    tried, started = [], model.init_
    model.fit(Q, D, pairs, callback=lambda epoch: tried.append(epoch.number))
    assert model.init_ == started
    assert tried.count(0) == 1


def test_a_kept_start_of_lsa_may_help_as_it_is():
    Q, D, pairs, _ = two_languages()
    slow = {**QUICK, "max_epochs": 6, "learning_rate": 1e-9}
    for init, advice in (("cl-lsa", "may help as it is"), ("normal", "leave it out")):
        model = CrossLanguageSSI(6, init=init, **slow).fit(Q, D, pairs)
        assert model.history_.best_epoch == 0
        assert any(remark.endswith(advice) for remark in model.remarks)
    for other in (LowRankSSI(4), S2Net(4, word_weight=0.5)):
        assert other.start.startswith(LATENT)


def test_of_few_pairs_the_start_has_fewer_dimensions():
    Q, D, pairs, _ = two_languages()
    few = pairs.only(pairs.queries[:5])
    model = CrossLanguageSSI(40, max_epochs=0, threads=1).fit(Q, D, few)
    assert not model.U_[:, len(few) :].any()
    assert not model.V_[:, len(few) :].any()


def test_the_gradient_by_documents_of_unit_length_is_that_of_differences():
    rng = np.random.default_rng(0)
    E, G = rng.standard_normal((2, 3, 5))
    E[1] = 0
    [found] = UnitLength().gradients([E.astype(np.float32)], G.astype(np.float32))
    expected, h = np.zeros_like(E), 1e-6
    for i, j in np.ndindex(*E.shape):
        if i != 1:
            up, down = E.copy(), E.copy()
            up[i, j], down[i, j] = up[i, j] + h, down[i, j] - h
            change = UnitLength().represent([up]) - UnitLength().represent([down])
            expected[i, j] = (change * G).sum() / (2 * h)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_files_of_before_have_the_inner_product(tmp_path):
    Q, D, pairs, _ = two_languages()
    model = CrossLanguageSSI(4, unit_documents=False, **QUICK).fit(Q, D, pairs)
    model.save(tmp_path / "now.safetensors")
    header, arrays = load_tensors(tmp_path / "now.safetensors")
    del header["params"]["unit_documents"]
    save_tensors(tmp_path / "before.safetensors", header, arrays)
    before = CrossLanguageSSI.load(tmp_path / "before.safetensors")
    assert before.unit_documents is False
    assert before.score(Q, D, [0], [1]) == model.score(Q, D, [0], [1])


def test_monolingual_task_is_a_step_after_each_step():
    """With sharing="both", V climbs both objectives: one epoch of one batch each, by hand."""
    Q, D, pairs, own = two_languages()
    settings = {"batch_size": 10**4, "n_negatives": 60, "margin": 50.0, "learning_rate": 0.01}
    model = CrossLanguageSSI(3, optimizer="sgd", unit_documents=False, **settings)
    model._monolingual = None
    alone = run_of_one_epoch(model, Q, D, pairs).scorer.parameters()
    model._monolingual = (check_csr("Q", D), own)
    both = run_of_one_epoch(model, Q, D, pairs).scorer.parameters()
    V, X = alone["V"].astype(float), D.toarray().astype(float)
    judged = np.zeros((60, 60), bool)
    judged[own.query, own.document] = True
    C = np.zeros((60, 60))
    for q in range(60):
        n_rest = (~judged[q]).sum()
        C[q, judged[q]] = n_rest / 60
        C[q, ~judged[q]] = -judged[q].sum() / 60
    # d/dV of sum_qd C_qd (V'x_q) . (V'x_d); U comes from the first step in both runs.
    step = X.T @ (C @ X @ V) + X.T @ (C.T @ X @ V)
    np.testing.assert_array_equal(both["U"], alone["U"])
    np.testing.assert_allclose(both["V"], V + 0.01 * step, atol=2e-4)


def test_a_killed_fit_of_two_tasks_resumes_to_the_same_bytes(tmp_path):
    Q, D, pairs, own = two_languages()
    path = tmp_path / "state"

    def fit(task=own, **options):
        model = CrossLanguageSSI(3, sharing="documents", init="normal", **QUICK)
        return model.fit(Q, D, pairs, monolingual=(D, task), **options)

    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint=path, callback=killing(2))
    saved, numbers = path.read_bytes(), []
    resumed = fit(checkpoint=path, callback=lambda epoch: numbers.append(epoch.number))
    assert numbers == [3, 4]
    assert resumed.V_.tobytes() == fit().V_.tobytes()
    path.write_bytes(saved)
    other = own.only(own.queries[::2])
    assert fit(other, checkpoint=path).V_.tobytes() == fit(other).V_.tobytes()


def test_monolingual_queries_need_the_documents_words():
    Q, D, pairs, own = two_languages()
    with pytest.raises(ValueError, match="monolingual has 12 columns, D has 18"):
        CrossLanguageSSI(4, **QUICK).fit(Q, D, pairs, monolingual=(Q, own))
    with pytest.raises(ValueError, match="monolingual: row 0 has length 2; unit rows are expected"):
        CrossLanguageSSI(4, **QUICK).fit(Q, D, pairs, monolingual=(2 * D, own))
