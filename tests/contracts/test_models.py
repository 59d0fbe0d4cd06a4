"""What every matching model promises (``ssi_models.base.MatchingModel``)."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from pair_data import maker, random_labels, sparse_texts

from ssi_models.parameters import NotFittedError
from ssi_models.persistence import load_tensors
from ssi_models.projections.baselines import VSM, Baseline
from ssi_models.registry import MODELS, get_model, load_model
from ssi_models.remarks import FitWarning
from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.loop import DivergenceWarning
from ssi_models.training.preferences import Preferences
from ssi_models.training.trainable import TrainableModel
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

# Further forms of models: everything that changes how a model scores. A model that is not
# registered is given by its class.
FORMS = [
    ("ssi", {"symmetric": True}),
    ("ssi", {"diagonal": "learned", "n_frequent": 12}),
    ("ssi", {"diagonal": "none", "init": "normal", "shuffle": "queries"}),
    ("ssi", {"dropout": 0.5, "hold_out": "pairs"}),
    ("psi", {"degree": 4}),
    ("psi", {"separate": True}),
    ("hash", {"identity": "mixed"}),
    ("hash", {"identity": "added"}),
    ("correlated-hash", {"mixture": True}),
    ("correlated-hash", {"mixture": True, "diagonal": "learned", "bins": 2}),
    ("query-expansion", {"beta": 0.5, "n_expansion": 3}),
    ("lsi-tfidf", {"alpha": 0.25}),
    ("lsa", {"scaling": "inverse"}),
    ("s2net", {"symmetric": False}),
    ("s2net", {"optimizer": "l-bfgs"}),
    ("s2net", {"validation_measure": "map"}),
    ("s2net", {"optimizer": "adagrad", "shuffle": "queries"}),
    ("unigram", {"smoothing": "dirichlet", "mu": 7.0}),
]
CASES = [(name, {}) for name in MODELS] + FORMS
N, WIDTH, EMPTY = 40, 30, 7


def label(case):
    return "-".join([getattr(case[0], "name", case[0]), *(f"{k}={v}" for k, v in case[1].items())])


#: Models fitted to the data, by case; tests that only use them share them.
FITTED = {}


@pytest.fixture(params=CASES, ids=label)
def make(request):
    """Makes a fresh model; ``make.kind`` is its class, and there are texts and data for it.
    ``make.fitted()`` is a model fitted to the data, for tests that leave it as it is."""
    model, options = request.param
    make = maker(model if isinstance(model, type) else get_model(model), options)
    make.texts = lambda seed, columns=None: texts(seed, make.kind, columns)
    make.data = lambda: (make.texts(0), make.texts(1), labels())

    def fitted():
        case = label(request.param)
        if case not in FITTED:
            FITTED[case] = make().fit(*make.data())
        return FITTED[case]

    make.fitted = fitted
    return make


def texts(seed, kind=VSM, columns=None):
    return sparse_texts(seed, kind, N, WIDTH, empty=EMPTY, columns=columns)


def labels(seed=2):
    return random_labels(N, seed)


def few_labels():
    """Of the first 30 queries."""
    pairs = labels()
    kept = pairs.query < 30
    return Preferences.from_pairs(
        pairs.query[kept], pairs.document[kept], n_queries=30, n_documents=N
    )


def data():
    return texts(0), texts(1), labels()


def lists(seed=6):
    """Some of them empty, some with a document only."""
    drawn = np.random.default_rng(seed).integers(N, size=(300, 2))
    return CandidateLists.from_pairs(drawn[:, 0] // 2 * 2, drawn[:, 1], n_queries=N, n_documents=N)


PAIRS = tuple(np.random.default_rng(5).integers(N, size=(2, 90)))


def scores_of(model, Q=None, D=None, pairs=PAIRS):
    Q, D = texts(0, type(model)) if Q is None else Q, texts(1, type(model)) if D is None else D
    scores = model.score(Q, D, *pairs)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    return scores


def history_of(model):
    """As text: the first loss is NaN."""
    return repr(getattr(model, "history_", None))


def test_fit_returns_the_model(make):
    model = make()
    assert model.fit(*make.data()) is model
    assert scores_of(model).shape == (90,)


def test_two_fits_are_equal(make):
    np.testing.assert_array_equal(scores_of(make().fit(*make.data())), scores_of(make.fitted()))


def test_fitting_again_forgets_the_first_fit(make):
    model = make().fit(make.texts(3), make.texts(4), labels(5))
    np.testing.assert_array_equal(scores_of(model.fit(*make.data())), scores_of(make.fitted()))


def test_threads_do_not_change_a_bit(make):
    one, two = make.fitted(), make(threads=2).fit(*make.data())
    assert one.threads == 1
    for name in make.kind.tensors:
        assert getattr(one, f"{name}_").tobytes() == getattr(two, f"{name}_").tobytes()
    assert scores_of(one).tobytes() == scores_of(two).tobytes()
    assert history_of(one) == history_of(two)


def test_candidate_lists_are_learned_from(make):
    """The same bytes for any number of threads, and other ones than without them; models that learn
    from no negatives refuse them."""
    if not issubclass(make.kind, TrainableModel):
        with pytest.raises(ValueError, match=r"candidate_lists: .* learns from no negatives"):
            make().fit(*make.data(), candidate_lists=lists())
        return
    one, two = (
        make(threads=n, max_epochs=2).fit(*make.data(), candidate_lists=lists()) for n in (1, 2)
    )
    without = make(max_epochs=2).fit(*make.data())
    for name in make.kind.tensors:
        assert getattr(one, f"{name}_").tobytes() == getattr(two, f"{name}_").tobytes()
    assert history_of(one) == history_of(two)
    assert one.history_.epochs[-1].loss != without.history_.epochs[-1].loss
    with pytest.raises(ValueError, match="candidate_lists are over 40 x 40 rows, Q and D have"):
        make().fit(make.texts(0)[:30], make.texts(1), few_labels(), candidate_lists=lists())


def test_no_argument_is_ignored(make):
    """A word that fit does not know, and what does not fit the queries, is refused by all."""
    for name in ("exclude", "candidate"):
        with pytest.raises(TypeError, match=f"{name}'"):
            make().fit(*make.data(), **{name: np.arange(N)})
    with pytest.raises(ValueError, match=r"excluded has shape \(39,\) for 40"):
        make().fit(*make.data(), excluded=np.arange(N - 1))
    with pytest.raises(ValueError, match=r"excluded\[2\] is row 40, outside -1..39"):
        make().fit(*make.data(), excluded=[-1, 3, 40, *[-1] * (N - 3)])
    if make().get_params().get("hold_out") != "pairs":
        with pytest.raises(ValueError, match=r"groups has shape \(39,\) for 40"):
            make().fit(*make.data(), groups=np.arange(N - 1))
    model = make().fit(*make.data(), excluded=np.arange(N))
    with pytest.raises(ValueError, match=r"excluded has shape \(39,\) for 40"):
        model.score(make.texts(0), make.texts(1), *PAIRS, excluded=np.arange(N - 1))
    with pytest.raises(ValueError, match=r"excluded has shape \(39,\) for 40"):
        model.cache(make.texts(1)).scores(make.texts(0), excluded=np.arange(N - 1))


def test_unfitted_model_says_so(make, tmp_path):
    model = make()
    for use in (
        lambda: model.score(make.texts(0), make.texts(1), [0], [0]),
        lambda: model.cache(make.texts(1)),
        lambda: model.embed_queries(make.texts(0)),
        lambda: model.embed_documents(make.texts(1)),
        lambda: model.save(tmp_path / "model"),
    ):
        with pytest.raises(NotFittedError, match="not fitted; call fit or load"):
            use()


def test_saved_model_scores_the_same_bits(make, tmp_path):
    vocabulary = Vocabulary(f"word {i} é" for i in range(WIDTH))
    known = {"vocabulary": vocabulary, "recipe": "recipe 1"}
    if make.kind.inputs == "tf-idf":
        known["weighting"] = TfIdf().fit(make.texts(1))
    model = make().fit(*make.data(), **known)
    model.save(tmp_path / "model")
    loads = [make.kind.load, *([load_model] if make.kind in MODELS.values() else [])]
    for loaded in (load(tmp_path / "model") for load in loads):
        assert type(loaded) is make.kind
        assert scores_of(loaded).tobytes() == scores_of(model).tobytes()
        # Threads are the machine's matter and not kept.
        assert repr(loaded.set_params(threads=1)) == repr(model)
        assert loaded.vocabulary_ == vocabulary
        assert loaded.recipe_ == "recipe 1"
        assert history_of(loaded) == history_of(model)
        if "weighting" in known:
            np.testing.assert_array_equal(loaded.weighting_.idf_, known["weighting"].idf_)
        if isinstance(model, TrainableModel):
            assert loaded.learning_rate_ == model.learning_rate_
        if hasattr(model, "explain"):
            assert loaded.explain(2) == model.explain(2)


def test_file_of_another_model_is_refused(make, tmp_path):
    make.fitted().save(tmp_path / "model")
    other = next(kind for kind in MODELS.values() if kind is not make.kind)
    with pytest.raises(ValueError, match="holds a "):
        other.load(tmp_path / "model")
    (tmp_path / "text").write_text("no model")
    with pytest.raises(ValueError, match="not a readable model file"):
        make.kind.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        make.kind.load(tmp_path / "nothing")


def test_a_pair_scores_the_same_alone(make):
    model = make.fitted()
    alone = [scores_of(model, pairs=([q], [d]))[0] for q, d in zip(*PAIRS, strict=True)]
    np.testing.assert_array_equal(scores_of(model), alone)


def test_some_queries_score_the_same_without_the_others(make):
    model = make.fitted()
    query, document = (np.asarray(rows) for rows in PAIRS)
    some = (query >= 3) & (query < 9)
    alone = scores_of(model, make.texts(0)[3:9], pairs=(query[some] - 3, document[some]))
    np.testing.assert_array_equal(scores_of(model)[some], alone)


def test_some_documents_score_the_same_without_the_others(make):
    """As do documents that are added later."""
    model = make.fitted()
    if model.of_its_documents:
        pytest.skip("it knows documents by their places")
    query, document = (np.asarray(rows) for rows in PAIRS)
    some = (document >= 3) & (document < 9)
    alone = scores_of(model, D=make.texts(1)[3:9], pairs=(query[some], document[some] - 3))
    np.testing.assert_array_equal(scores_of(model)[some], alone)


def test_shuffled_pairs_give_shuffled_scores(make):
    model = make.fitted()
    order = np.random.default_rng(0).permutation(90)
    shuffled = scores_of(model, pairs=[rows[order] for rows in PAIRS])
    np.testing.assert_array_equal(shuffled, scores_of(model)[order])


def test_no_pairs_give_no_scores(make):
    assert scores_of(make.fitted(), pairs=([], [])).shape == (0,)


def test_cached_documents_score_every_query(make):
    model = make.fitted()
    cached = model.cache(make.texts(1))
    everything = cached.scores(make.texts(0))
    assert everything.shape == (N, N)
    expected = scores_of(model, pairs=(np.repeat(np.arange(N), N), np.tile(np.arange(N), N)))
    np.testing.assert_allclose(everything.ravel(), expected, atol=2e-5, rtol=1e-4)
    ((rows, scores),) = cached.top(make.texts(0)[3], 5)
    assert (np.diff(scores) <= 0).all()
    np.testing.assert_allclose(scores, np.sort(everything[3])[::-1][:5], atol=1e-6)
    alone = cached.scores(make.texts(0)[3])[0]
    np.testing.assert_array_equal(rows, np.argsort(-alone, kind="stable")[:5])


def test_embeddings_have_a_row_per_text(make):
    model = make.fitted()
    Eq, Ed = model.embed_queries(make.texts(0)), model.embed_documents(make.texts(1))
    assert Eq.shape[0] == Ed.shape[0] == N
    assert make.kind.inputs == "counts" or Eq.shape[1] == Ed.shape[1]
    assert Eq.dtype == Ed.dtype == np.float32


def test_empty_texts_have_finite_scores(make):
    model = make.fitted()
    empty = scores_of(model, pairs=(np.full(N, EMPTY), np.arange(N)))
    if make.kind.name not in ("popularity", "query-expansion"):
        assert (empty == 0).all()
    scores_of(model, pairs=(np.arange(N), np.full(N, EMPTY)))


def test_words_that_no_text_had_are_harmless(make):
    """Columns beyond those that occur in training."""
    wide = [sp.csr_matrix((x.data, x.indices, x.indptr), (N, WIDTH + 5)) for x in make.data()[:2]]
    model = make().fit(*wide, labels())
    unseen = sp.csr_matrix(([1.0], ([0], [WIDTH + 2])), (1, WIDTH + 5), dtype=np.float32)
    assert np.isfinite(model.score(unseen, wide[1], np.zeros(N, int), np.arange(N))).all()
    if not isinstance(model, Baseline) or make.kind.name != "popularity":
        assert np.isfinite(model.score(wide[0], wide[1], np.arange(N), np.arange(N))).all()


def test_vocabulary_of_70000_words(make):
    """Words past 2^16: the same texts in far columns score the same."""
    far = np.sort(np.random.default_rng(1).choice(70_000, WIDTH, replace=False))
    far[-1] = 69_999
    Q, D = (make.texts(seed, far) for seed in (0, 1))
    scores = scores_of(make().fit(Q, D, labels()), Q, D)
    assert np.ptp(scores) > 0
    # The others draw random numbers per word, or hash its number.
    if make.kind.name in (
        "popularity", "tfidf-popularity", "query-expansion", "diagonal", "full", "sparse",
        "vsm", "opca",
    ):  # fmt: skip
        np.testing.assert_allclose(scores, scores_of(make.fitted()), atol=1e-5)


@pytest.mark.parametrize("form", ["csc", "coo", "float64", "unsorted"])
def test_other_matrices_are_accepted(make, form):
    def changed(X):
        if form == "float64":
            return X.astype(np.float64)
        if form == "unsorted":
            turned = X.copy()
            for i in range(N):
                own = slice(*X.indptr[i : i + 2])
                turned.indices[own] = X.indices[own][::-1]
                turned.data[own] = X.data[own][::-1]
            turned.has_sorted_indices = False
            turned.has_canonical_format = False
            return turned
        return X.asformat(form)

    Q, D, pairs = make.data()
    model = make().fit(changed(Q), changed(D), pairs)
    np.testing.assert_array_equal(
        scores_of(model, changed(Q), changed(D)), scores_of(make.fitted())
    )


def test_inputs_are_not_modified(make):
    Q, D, pairs = make.data()
    candidates, excluded = np.arange(N)[::-1].copy(), np.arange(N)
    given = [Q.data, Q.indices, Q.indptr, D.data, D.indices, pairs.query, pairs.document,
             candidates, excluded, *PAIRS]  # fmt: skip
    before = [array.copy() for array in given]
    model = make().fit(Q, D, pairs, candidates=candidates, excluded=excluded)
    scores_of(model, Q, D)
    model.cache(D).scores(Q)
    for array, copy in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_what_a_model_of_ones_own_is_given_cannot_be_changed(monkeypatch):
    """Other models learn from the same rows."""
    for change in (
        lambda given: given.D.data.fill(0),
        lambda given: given.preferences.query.sort(),
        lambda given: given.Q.__imul__(2),
    ):
        monkeypatch.setattr(VSM, "_learn", lambda self, given: change(given))  # noqa: B023
        with pytest.raises(ValueError, match="read-only"):
            VSM().fit(*data())


def test_bad_input_is_refused_by_name(make):
    Q, D, pairs = make.data()
    with pytest.raises(TypeError, match="Q must be a scipy sparse matrix"):
        make().fit(Q.toarray(), D, pairs)
    broken = D.copy()
    broken.data[broken.indptr[3]] = np.nan
    with pytest.raises(ValueError, match="D: row 3 holds nan"):
        make().fit(Q, broken, pairs)
    far = D.copy()
    far.indices[far.indptr[3]] = WIDTH  # a kernel would write beyond its arrays
    with pytest.raises(ValueError, match="D is damaged: it has columns 0 to 30 of 30"):
        make().fit(Q, far, pairs)
    with pytest.raises(ValueError, match="preferences are over 40 x 40 rows"):
        make().fit(Q, D[:20], pairs)
    with pytest.raises(ValueError, match="D has no word in any row: there is nothing to learn"):
        make().fit(Q, sp.csr_matrix(D.shape, dtype=D.dtype), pairs)
    if make.kind.name != "cross-language":
        with pytest.raises(ValueError, match="Q has 20 columns, D has 30"):
            make().fit(Q[:, :20], D, pairs)
    with pytest.raises(ValueError, match=r"candidates\[1\] is row 40"):
        make().fit(Q, D, pairs, candidates=[3, 40])
    model = make.fitted()
    with pytest.raises(ValueError, match="Q has 20 columns, the model was fitted on 30"):
        model.score(Q[:, :20], D, [0], [0])
    with pytest.raises(ValueError, match=r"document\[1\] is row 40, outside 0..39"):
        model.score(Q, D, [0, 0], [3, 40])
    with pytest.raises(ValueError, match=r"query\[0\] is row -1"):
        model.score(Q, D, [-1], [3])
    with pytest.raises(ValueError, match="1 query rows for 2 document rows"):
        model.score(Q, D, [0], [0, 1])
    with pytest.raises(ValueError, match=r"query must be a list of row numbers, its shape"):
        model.score(Q, D, [[0, 1]], [[0, 1]])
    if model.same_words:
        with pytest.raises(ValueError, match="vocabulary has 2 words, but the matrices have"):
            make().fit(Q, D, pairs, vocabulary=Vocabulary(["a", "b"]))
        with pytest.raises(TypeError, match=r"vocabulary must be ssi_models.Vocabulary, got dict"):
            make().fit(Q, D, pairs, vocabulary={"a": 0})
    if model.same_words and make.kind.inputs == "tf-idf":
        with pytest.raises(ValueError, match="weighting has 20 words, but the matrices have"):
            make().fit(Q, D, pairs, weighting=TfIdf().fit(D[:, :20]))


def test_stored_zeros_are_no_words(make):
    Q, D, pairs = make.data()
    D.data[:] = 0
    with pytest.raises(ValueError, match="D has no word in any row: there is nothing to learn"):
        make().fit(Q, D, pairs)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_queries_without_words_and_documents_that_are_all_relevant_teach_nothing(make):
    Q, D, _ = make.data()
    every = Preferences.from_pairs(*np.indices((N, N)).reshape(2, -1), n_queries=N, n_documents=N)
    scores_of(make().fit(Q, D, every))
    wordless = Q[[EMPTY] * N], D, labels()
    if make.kind.inputs == "counts" and make.kind.weighs_pairs:
        with pytest.raises(ValueError, match=r"none of the .* pairs has words on both"):
            make().fit(*wordless)
    else:
        scores_of(make().fit(*wordless))


def test_numbers_of_numpy_are_parameters_and_other_kinds_are_refused(make, tmp_path):
    """A grid has the former; the latter are named before anything is computed."""
    kinds = {int: np.int64, float: np.float64, bool: np.bool_}
    given = {k: kinds[type(v)](v) for k, v in make().get_params().items() if type(v) in kinds}
    model = make(**given).fit(*make.data())
    model.save(tmp_path / "model")
    loaded = make.kind.load(tmp_path / "model")
    assert loaded.set_params(threads=1).get_params() == model.get_params()
    assert scores_of(model).tobytes() == scores_of(make.fitted()).tobytes()
    for name, usual in make.kind.default_params().items():
        if type(usual) not in kinds:
            continue
        wanted = "True or False" if isinstance(usual, bool) else "a (whole )?number"
        for odd in ("no", float("nan")):
            with pytest.raises(ValueError, match=f"{name} must be {wanted}.*, got {odd!r}"):
                make(**{name: odd}).fit(*make.data())


def test_what_is_of_no_declared_type_is_refused_by_name(make):
    """Also where a parameter may be None, or "auto"."""
    for name in make.kind.default_params():
        with pytest.raises(ValueError, match=f"{name} must be .*, got {{}}"):
            make(**{name: {}}).fit(*make.data())
    for name, declared in make.kind.param_types().items():
        if declared in ("int", "float"):
            with pytest.raises(ValueError, match=f"{name} must be a (whole )?number, got 'auto'"):
                make(**{name: "auto"}).fit(*make.data())


def test_parameters_can_be_read_and_set(make):
    model = make()
    parameters = model.get_params()
    assert type(model)(**parameters).get_params() == parameters
    assert model.set_params(threads=7) is model
    assert model.get_params()["threads"] == 7
    assert "threads=7" in repr(model)
    with pytest.raises(ValueError, match="has no parameter 'thread'; did you mean 'threads'"):
        model.set_params(thread=1)


def test_constructor_keeps_what_it_is_given(make):
    """Checks happen in ``fit``, so that a model can be made and cloned freely."""
    if issubclass(make.kind, TrainableModel):
        model = make().set_params(margin=-1)
        with pytest.raises(ValueError, match="margin must be positive"):
            model.fit(*make.data())


def test_training_loss_falls(make):
    if not issubclass(make.kind, TrainableModel):
        pytest.skip("nothing is trained")
    model = make(max_epochs=12, patience=12, learning_rate=0.1).fit(*make.data())
    losses = [epoch.loss for epoch in model.history_.epochs[1:]]
    assert losses[-1] < losses[0]
    assert model.history_.best_validation >= model.history_.epochs[0].validation


@pytest.mark.parametrize("n_calls", [1, 5, 9])
def test_an_interrupted_fit_leaves_the_model_as_it_was(make, n_calls):
    calls = []

    def interrupt(epoch):
        calls.append(epoch)
        if len(calls) == n_calls:
            raise KeyboardInterrupt

    model = make(max_epochs=3, patience=9).fit(*make.data())
    before = {name: getattr(model, f"{name}_").tobytes() for name in make.kind.tensors}
    scores = scores_of(model)
    try:
        model.fit(make.texts(2), make.texts(3), labels(), callback=interrupt)
    except KeyboardInterrupt:
        after = {name: getattr(model, f"{name}_").tobytes() for name in make.kind.tensors}
        assert [name for name in before if before[name] != after[name]] == []
        np.testing.assert_array_equal(scores_of(model), scores)  # by the same form and weights
    else:
        pytest.skip("has ended before")


@pytest.mark.parametrize("n_calls", [2, 5, 8])
def test_a_killed_fit_resumes_to_the_same_bytes(make, tmp_path, n_calls):
    """Killed in any part of a fit (a sparse model has rounds, a mixture two models)."""
    every, calls, again, path = [], [], [], tmp_path / "state"

    def kill(epoch):
        calls.append(epoch)
        if len(calls) == n_calls:
            raise KeyboardInterrupt

    def fit(callback, **options):
        if issubclass(make.kind, TrainableModel):
            options["candidate_lists"] = lists()
        return make(max_epochs=3, patience=9).fit(*make.data(), callback=callback, **options)

    whole = fit(every.append)
    if n_calls > len(every):
        pytest.skip("has ended before")
    with pytest.raises(KeyboardInterrupt):
        fit(kill, checkpoint=path)
    resumed = fit(again.append, checkpoint=path)
    assert len(again) <= len(every) - n_calls + 1
    for name in make.kind.tensors:
        assert getattr(resumed, f"{name}_").tobytes() == getattr(whole, f"{name}_").tobytes(), name
    assert history_of(resumed) == history_of(whole)
    assert list(tmp_path.iterdir()) == []


def test_divergence_names_a_rate_and_keeps_the_best_parameters(make, monkeypatch):
    if not issubclass(make.kind, TrainableModel) or make().training.optimizer == "l-bfgs":
        pytest.skip("has no learning rate")
    make_run = make.kind.make_run

    def make_sick_run(*args, **options):
        run = make_run(*args, **options)
        step = run.step

        def sick_step(batch):
            if batch.number[0] == 2:
                next(iter(run.scorer.parameters().values())).flat[0] = np.nan
            return step(batch)

        run.step = sick_step
        return run

    monkeypatch.setattr(make.kind, "make_run", make_sick_run)
    with pytest.warns(DivergenceWarning, match=r"epoch 3: .* the learning rate was 0.5, try 0.05"):
        model = make(max_epochs=9, patience=9, learning_rate=0.5).fit(*make.data())
    assert len(model.history_.epochs) == 3
    for name in make.kind.tensors:
        assert np.isfinite(getattr(model, f"{name}_")).all(), name
    monkeypatch.undo()
    if make.kind.name != "sparse":  # its later rounds go on from the best of the first
        good, first = make(max_epochs=2, learning_rate=0.5), f"{next(iter(make.kind.tensors))}_"
        np.testing.assert_array_equal(getattr(model, first), getattr(good.fit(*make.data()), first))


def test_nearest_words_are_the_best_of_all_words(make):
    if make.kind.inputs == "counts":
        pytest.skip("P(word|title) of the model alone, without the mixture")
    model = make.fitted()
    if make.kind.name in ("popularity", "tfidf-popularity"):
        with pytest.raises(TypeError, match="scores documents, not words"):
            model.nearest_words(3)
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", FitWarning)
        near = model.nearest_words(3, 4)
    assert bool(told) == model.only_same_words
    words = sp.identity(WIDTH, np.float32, format="csr")
    scores = model.score(words, words, np.full(WIDTH, 3), np.arange(WIDTH))
    best = np.sort(scores)[::-1][:4]
    np.testing.assert_allclose([s for _, s in near], best[best != 0], atol=1e-5)
    if model.only_same_words:
        assert [t for t, _ in near] == [3]
    with pytest.raises(ValueError, match=r"word\[0\] is row 30"):
        model.nearest_words(WIDTH)


def test_file_header_is_json_without_code(tmp_path):
    model = get_model("ssi")(rank=3, max_epochs=1, threads=1).fit(*data())
    model.save(tmp_path / "model")
    header, arrays = load_tensors(tmp_path / "model")
    assert header["model"] == "ssi"
    assert header["params"]["rank"] == 3
    assert set(arrays) == {"U", "V", "diagonal", "embedded_words"}
