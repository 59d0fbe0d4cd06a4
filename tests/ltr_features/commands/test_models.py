"""``models list``, ``models info`` and ``explain``."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from beir_folders import with_ids, write_beir
from toys import done, refused, run
from typer.testing import CliRunner

from letor.errors import InputError
from ltr_features.cli import app
from ltr_features.text.analyzer import Analyzer
from ssi_models.projections.baselines import Popularity
from ssi_models.projections.lsa import LSA, LsiTfIdf
from ssi_models.registry import MODELS, load_model
from ssi_models.ssi.correlated_hash import CorrelatedHashSSI
from ssi_models.ssi.cross_language import CrossLanguageSSI
from ssi_models.ssi.diagonal import DiagonalSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.topics.bilingual import PLSA
from ssi_models.topics.translation import IBMModel1
from ssi_models.training.preferences import Preferences
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

N = 24
WORDS = Vocabulary(["apple", "pear", "car", "bus", "new", "york", "fruit", "traffic"])
QUICK = {"max_epochs": 3, "batch_size": 16, "n_negatives": 8, "threads": 1}


def data():
    """Half of the texts are about fruit, half about traffic; "pear" only with "fruit"."""
    X = np.zeros((N, len(WORDS)))
    X[: N // 2, 0] = X[: N // 2, 6] = 1
    X[: N // 4, 1] = 1
    X[N // 2 :, 2] = X[N // 2 :, 7] = 1
    X[N // 2 :: 2, 3] = X[N // 2 :: 3, 4] = X[N // 2 :: 3, 5] = 1
    topic = np.arange(N) >= N // 2
    pairs = np.nonzero(topic[:, None] == topic)
    return X, Preferences.from_pairs(*pairs, n_queries=N, n_documents=N)


def saved(tmp_path, model, counts=False, vocabulary=WORDS, recipe="recipe 1"):
    X, pairs = data()
    if not counts:
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    X = sp.csr_matrix(X, dtype=np.float32)
    model.fit(X, X, pairs, vocabulary=vocabulary, recipe=recipe).save(tmp_path / "model")
    return tmp_path / "model"


def lines(*arguments):
    return done(*arguments).splitlines()


def test_list_names_every_model():
    found = lines("models", "list")
    assert {line.split()[0] for line in found if line.strip()} >= set(MODELS)
    own = "\n".join(lines("models", "list", "psi"))
    assert "    degree = 3" in own
    assert "Reference:" in own
    assert "there is no model 'bert'" in refused("models", "list", "bert")


def test_info_shows_the_header(tmp_path):
    found = lines("models", "info", saved(tmp_path, LowRankSSI(3, **QUICK)))
    assert found[0].startswith(f"{tmp_path / 'model'}: ssi, f(q, d) = q' (U'V + I) d")
    assert "    rank = 3" in found
    assert "words of documents: 8, with their words" in found
    assert "text analysis: recipe 1" in found
    assert "array U: float32 [8 x 3], 0.0 MB" in found
    assert "epochs: 3" in found
    history = load_model(tmp_path / "model").history_
    before, after = history.epochs[0].validation, history.best_validation
    assert (
        f"MAP on held-out training queries: {before:.4f} before training, {after:.4f} at the epoch "
        "kept"
    ) in found
    with pytest.raises(FileNotFoundError, match=r"none: no such model file$"):
        done("models", "info", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r": a folder, not a model file$"):
        done("models", "info", tmp_path)


def test_explain_names_the_nearest_words(tmp_path):
    model = LowRankSSI(3, **QUICK)
    path = saved(tmp_path, model)
    *_, line = lines("explain", path, "APPLE", "--count", 2)
    near = [(WORDS[row], score) for row, score in model.nearest_words(0, 2)]
    assert line == "APPLE matches: " + ", ".join(f"{w} {x:.3f}" for w, x in near)
    *_, two, alone = lines("explain", path, "new york", "new", "--count", 1)
    assert two.startswith("new york matches: ")
    assert alone.startswith("new matches: ")


def test_explain_hints_at_the_words_that_begin_most_alike(tmp_path):
    words = Vocabulary(["tram", "pear", "car", "bus", "new", "york", "traffic", "trap"])
    path = saved(tmp_path, LowRankSSI(3, **QUICK), vocabulary=words)
    told = "'trafic' is not a word of the model; words that begin alike: "
    assert refused("explain", path, "trafic").rstrip().endswith(f"{told}traffic")
    assert refused("explain", path, "trains").rstrip().endswith("begin alike: tram, traffic, trap")
    assert "begin alike" not in refused("explain", path, "trees")


def test_explain_shows_the_weights_of_words_that_match_themselves_alone(tmp_path):
    model = DiagonalSSI(**QUICK)
    path = saved(tmp_path, model)
    model.diagonal_[:] = np.arange(8) / 4 - 0.5
    model.save(path)
    *_, one, both = lines("explain", path, "apple", "new york", "--count", 2)
    assert one == "apple matches itself alone, with the weight -0.500"
    assert both == "new york matches its own words alone, weights new 0.500, york 0.750"


def test_info_says_what_was_chosen(tmp_path):
    found = lines("models", "info", saved(tmp_path, LSA(3)))
    assert "word weight chosen by held-out queries: no" in found
    found = lines("models", "info", saved(tmp_path, LsiTfIdf(3, alpha=0.3)))
    assert "array alpha: float32 [1], 0.3" in found


def test_explain_analyses_words_as_the_texts_were(tmp_path):
    words = Vocabulary(["appl", "東京", "bus", "car", "new", "york", "fruit", "京都"])
    recipe = Analyzer(stemmer="english", cjk_bigrams=True).canonical
    path = saved(tmp_path, LowRankSSI(3, **QUICK), vocabulary=words, recipe=recipe)
    assert "text analysis: stemmer=english, cjk_bigrams=True" in lines("models", "info", path)
    *_, apples, pairs = lines("explain", path, "Apples", "東京都")
    assert apples.startswith("Apples matches: ")
    assert pairs.startswith("東京都 matches: ")


def test_query_of_several_words_scores_as_a_text(tmp_path):
    model = LowRankSSI(3, **QUICK)
    saved(tmp_path, model)
    q = sp.csr_matrix(np.eye(8, dtype=np.float32)[4:6].sum(axis=0) / np.sqrt(2))
    words = sp.identity(8, np.float32, format="csr")
    scores = model.score(q, words, np.zeros(8, int), np.arange(8))
    near = model.nearest_words_of_text(q, 8)
    np.testing.assert_allclose([x for _, x in near], scores[[row for row, _ in near]], atol=1e-6)


def test_words_of_a_query_are_weighted_as_in_scores(tmp_path):
    X, pairs = data()
    weighting = TfIdf().fit(sp.csr_matrix(X))
    rows = weighting.transform(sp.csr_matrix(X))
    model = LowRankSSI(3, **QUICK)
    model.fit(rows, rows, pairs, vocabulary=WORDS, weighting=weighting).save(tmp_path / "model")
    text = sp.csr_matrix(([1.0, 1.0], ([0, 0], [0, 1])), (1, len(WORDS)))
    near = model.nearest_words_of_text(weighting.transform(text), 1)
    shown = lines("explain", tmp_path / "model", "apple pear", "--count", 1)[-1]
    assert shown == f"apple pear matches: {WORDS[near[0][0]]} {near[0][1]:.3f}"


def test_explain_shows_what_a_word_is_hashed_to(tmp_path):
    path = saved(tmp_path, CorrelatedHashSSI(2, n_features=2, bins=1, **QUICK))
    *_, hashed, matches = lines("explain", path, "pear", "--count", 1)
    # pear occurs in 6 texts, always with apple (12), the first of two equal frequent words.
    assert hashed == "pear is hashed to (DICE): apple 0.667"
    assert matches.startswith("pear matches: ")
    # Words are folded as those of texts are.
    assert lines("explain", path, "ＰＥＡＲ", "--count", 1)[-1] == matches.replace(
        "pear", "ＰＥＡＲ"
    )


def test_explain_shows_topics_and_translations(tmp_path):
    path = saved(tmp_path, PLSA(n_topics=2, lambda2=0.5, threads=1), counts=True)
    found = lines("explain", path, "--count", 3)
    assert [line.split(":")[0] for line in found] == [
        "topic 0, query", "topic 0, title", "topic 1, query", "topic 1, title"
    ]  # fmt: skip
    assert lines("explain", path, "apple")[0].startswith("apple matches: ")
    told = refused("explain", path, "new york")
    assert "explains single terms; 'new york' is several: new, york" in told
    path = saved(tmp_path, IBMModel1(threads=1), counts=True)
    assert any(line.startswith("apple generates: ") for line in lines("explain", path))


def test_topics_of_trigrams_explain_one_at_a_time(tmp_path):
    parts = Vocabulary(["#bu", "#ca", "ar#", "bus", "car", "ork", "rk#", "us#"])
    model = PLSA(n_topics=2, lambda2=0.5, threads=1)
    path = saved(tmp_path, model, counts=True, vocabulary=parts)
    told = refused("explain", path, "cart")
    assert "explains single terms; 'cart' is several: #ca, car" in told
    near = [f"{parts[row]} {x:.3f}" for row, x in model.nearest_words(4, 2)]
    (line,) = lines("explain", path, "car", "--count", 2)
    assert line == f"car matches: {', '.join(near)}"


def test_small_probabilities_are_not_shown_as_0(tmp_path):
    words = Vocabulary([f"w{i}" for i in range(4000)])
    X = sp.random(N, len(words), 0.2, "csr", np.float32, np.random.default_rng(0))
    X.data[:] = 1
    _, pairs = data()
    PLSA(n_topics=2, lambda2=0.5, threads=1).fit(X, X, pairs, vocabulary=words).save(
        tmp_path / "model"
    )
    shown = lines("explain", tmp_path / "model", "w7")[-1].split(": ")[1].split(", ")
    values = [float(match.split()[1]) for match in shown]
    assert min(values) > 0


def test_a_model_is_no_file_of_rows(tmp_path):
    path = saved(tmp_path, LowRankSSI(2, **QUICK)).rename(tmp_path / "ssi.safetensors")
    assert "is a model, not rows: see ltr-features models info" in refused("validate", path)


def popularity(rank, **options):
    return Popularity()


@pytest.mark.parametrize(
    ("model", "vocabulary", "words", "message"),
    [
        (LowRankSSI, WORDS, ["apples"], "'apples' is not a word of the model.*alike: apple"),
        (LowRankSSI, WORDS, ["xylophone"], "'xylophone' is not a word of the model$"),
        (LowRankSSI, WORDS, [], "'ssi' has no topics to show; name one or more words"),
        (LowRankSSI, None, ["apple"], "fitted without its vocabulary"),
        (popularity, WORDS, ["apple"], "'popularity' scores the documents of its fit, not their"),
    ],
)
def test_what_cannot_be_explained_is_said(tmp_path, model, vocabulary, words, message):
    path = saved(tmp_path, model(2, **QUICK), vocabulary=vocabulary)
    assert re.search(message, refused("explain", path, *words))


def test_unknown_words_stop_no_other_and_are_left_out_of_queries(tmp_path):
    path = saved(tmp_path, LowRankSSI(2, **QUICK), vocabulary=WORDS)
    query = run("explain", path, "apple pear", "apple xylophone pear")
    assert "apple xylophone pear: left out, as the model lacks it: xylophone" in query.stderr
    whole, known = (line.split(" matches: ")[1] for line in query.stdout.splitlines()[-2:])
    assert whole == known
    result = CliRunner().invoke(app, ["explain", str(path), "zither", "pear", "xylophone"])
    assert "\npear matches: " in result.stdout
    assert isinstance(result.exception, InputError)
    assert re.search("'zither' is not a word .*\n'xylophone' is not a", str(result.exception))


def test_queries_with_other_words_are_refused(tmp_path):
    X, pairs = data()
    X = sp.csr_matrix(X / np.linalg.norm(X, axis=1, keepdims=True), dtype=np.float32)
    Q = sp.csr_matrix(np.eye(N, 5, dtype=np.float32))
    model = CrossLanguageSSI(2, **QUICK).fit(Q, X, pairs, vocabulary=WORDS)
    model.save(tmp_path / "model")
    told = refused("explain", tmp_path / "model", "apple")
    assert "queries of this cross-language model have words of" in told


def test_unknown_words_of_queries_are_told(tmp_path):
    """A model of pairs learns nothing of them: queries in another language, say."""
    documents, queries = (
        with_ids({str(i): f"{text}{i}" for i in range(4)}) for text in ("word", "wort")
    )
    judged = "".join(f"{i}\t{i}\t1\n" for i in range(4))
    write_beir(tmp_path, documents, queries, test=judged)
    done("index", "beir", f"folder={tmp_path}", "--out", tmp_path / "workspace")
    fit = ("--workspace", tmp_path / "workspace", "--out", tmp_path / "m.safetensors")
    told = "100 % of the words in queries occur in no document"
    assert told in run("models", "fit", "popularity", *fit).stderr
    assert told not in run("models", "fit", "lsi", "--param", "rank=2", *fit).stderr
