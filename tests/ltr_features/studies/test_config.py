"""Experiment files are checked as a whole."""

from __future__ import annotations

from importlib import resources

import pytest
from beir_folders import with_ids, write_beir
from small_experiment import load

from letor.errors import InputError
from ltr_features.studies.config import MAX_SEED, refitted
from ltr_features.studies.kinds.ranking_checks import demo_config
from ltr_features.studies.kinds.ranking_config import EvaluationConfig
from ltr_features.studies.kinds.sections import ModelConfig
from ltr_features.studies.run import run_file
from ssi_models.registry import get_model

EXPERIMENTS = resources.files("ltr_features.studies") / "experiments"
DEMO = (EXPERIMENTS / "demo.toml").read_text(encoding="utf-8")


def test_the_demo_is_valid_and_compares_with_and_without_the_columns(tmp_path):
    config = demo_config()
    by_name = {system.name: system for system in config.systems}
    system, baseline = config.evaluation.comparisons[0]
    assert by_name[baseline].columns == ("letor46",)
    every = {part.family for part in config.columns} | {model.name for model in config.models}
    assert set(by_name[system].columns) == every
    # A control that knows SSI's start, too: the gain of what is learned.
    assert ("words+SSI", "words+LSA") in config.evaluation.comparisons

    other = demo_config(tmp_path / "dump.xml", seed=7)
    named = [part.options["dump"] for part in other.columns if "dump" in part.options]
    assert {other.collection.dump, *named} == {str(tmp_path / "dump.xml")}
    assert other.title == "Do semantic columns help to find sections of dump.xml?"
    assert other.seed == 7
    assert config.repeats == 1
    assert demo_config(seed=MAX_SEED - 2, repeats=3).repeats == 3
    with pytest.raises(InputError, match=r"seeds .* add up to 2,147,483,649, and rankers"):
        demo_config(seed=MAX_SEED, repeats=3)
    full = demo_config(repeats=3)
    assert [full.fits_of(system) for system in full.systems if system.name == "words+SSI"] == [3]


def test_all_mistakes_are_listed_at_once(tmp_path):
    text = DEMO.replace("words_per_query = 10", "words_per_qery = 10").replace(
        "candidate_depth = 100", "candidate_depth = 0"
    )
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    message = str(error.value)
    assert "experiment.toml" in message
    assert "words_per_qery; did you mean 'words_per_query'" in message
    assert "candidate_depth" in message


def test_a_given_score_is_a_system_by_itself(tmp_path):
    """The columns of given scores are called as their files are in the options."""
    (tmp_path / "a.run").write_text("q Q0 d 1 2.5 engine\n", encoding="utf-8")
    family = '[[columns]]\nfamily = "scores"\noptions = { files = { engine = "a.run" } }\n\n'
    text = DEMO.replace("[[columns]]\n", f"{family}[[columns]]\n", 1)
    text = text.replace('score = "vsm"', 'score = "engine"', 1)
    text = text.replace('"vsm", "lsa"]', '"vsm", "engine", "lsa"]', 1)
    assert load(tmp_path, text).systems[1].score == "engine"
    with pytest.raises(InputError, match="no column 'motor'; "):
        load(tmp_path, text.replace('score = "engine"', 'score = "motor"'))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('hard_control = "words, refit 1"', 'hard_control = "nobody"', "no system 'nobody'"),
        (
            'word_map = "ssi"',
            'word_map = "d2v-word"',
            "word_map: no model, and no column family with word vectors, is called 'd2v-word'; "
            "did you mean 'w2v-word'",
        ),
        (
            'document_map = "ssi"',
            'document_map = "w2v-word"',
            "document_map: no model, and no column family with document vectors, is called "
            "'w2v-word'; did you mean 'd2v-",
        ),
        (
            "measures = [",
            "learning_curve = [0.5, 100]\nmeasures = [",
            "evaluation.learning_curve.1: must be below 1, got 100",
        ),
        (
            "measures = [",
            "learning_curve = [0.3, 0.30000001]\nmeasures = [",
            "evaluation.learning_curve: a share is named twice",
        ),
        (
            "candidate_depth = 100",
            "candidates = {}",
            "candidates: name at least one source",
        ),
        (
            "candidate_depth = 100",
            "candidates = { ssi = { depth = 5 } }",
            "candidates: model 'ssi' learns from judgements",
        ),
        (
            'columns = ["letor46", "vsm", "lsa"]',
            'columns = ["letor47", "vsm", "lsa"]',
            "no columns 'letor47'; did you mean 'letor46'",
        ),
        ('score = "bm25_whole"', "", "give either score or columns"),
        ('"NDCG@20", "MAP"', '"NDCG@20", "MAPP"', "measure 'MAPP' is unknown"),
        (
            '"NDCG@20", "MAP"',
            '"NDCG@20", "ndcg@20"',
            "evaluation: measures 'NDCG@20' and 'ndcg@20'",
        ),
        ('name = "SSI"', 'name = "Bm25"', r"two systems share the name \(as a folder\) bm25"),
        (
            'name = "words+LSA"',
            'name = "words LSA"\n',
            r"no system 'words\+LSA'; did you mean 'words LSA'",
        ),
        (
            'name = "SSI"',
            'name = "' + 101 * "ж" + '"',
            "systems: ж+… is a name of 202 bytes; give 200",
        ),
        ('name = "by-article"', 'name = "by-query"', "two splits share the name"),
        ('name = "SSI"', 'name = "SSI"\nlabel = "BM25"', "two systems are called BM25 in the verd"),
        ('name = "by-article"', 'name = "../x"', "splits.1.name"),
        ('model = "ssi"', 'model = "ssi"\nterms = "letters"', "models.1.terms.*'letter-trigrams'"),
        (
            "options = { min_document_frequency = 3 }",
            'options = { terms = "letters" }',
            "terms must be 'words' or 'letter-trigrams' or 'both', got 'letters'",
        ),
        ("rank = 50", "rnak = 50", "unknown parameter params.rnak; did you mean 'rank'"),
        (
            "symmetric = true",
            'hold_out = "queries"',
            "hold_out='queries': a fold holds out its training",
        ),
        (
            "learning_rate = 0.15",
            "learn_rate = 0.15",
            "params.learn_rate; did you mean 'learning_rate'",
        ),
        ('score = "vsm"', 'score = "vsn"', "no column 'vsn'; did you mean 'vsm'"),
        ("turn = 2", "turn = 4", "turn is 4.*use 0 to 3"),
        ('hard_control = "words, refit 1"', 'hard_control = "words"', "hard_control must be"),
        ('["BM25", "words, refit 2"]', '["words"]', "hard_selectors must not have 'words'"),
        ("hard_systems = [", 'hard_systems = ["words", ', "hard_systems must not have 'words'"),
        (
            'score = "vsm"',
            'score = "vsm"\nrepeats = 2',
            "'TF-IDF': repeats: the system is not fitted",
        ),
        (
            'score = "vsm"',
            'score = "vsm"\nturn = 1',
            "'TF-IDF': seed and turn are for rankers, and a score has none",
        ),
        ("seed = 0", "repeats = 0", "repeats: must be 1 or more, got 0"),
        ("seed = 0", f"repeats = {10**30}", "repeats: must be 10,000 or less, got 10"),
        ("seed = 0", 'groups = "g.tsv"', "groups: .*g.tsv: no such file"),
        (
            "seed = 0",
            "seed = 3_000_000_000",
            "  seed: must be 2,147,483,647 or less",
        ),
        (
            "learning_rate = 0.15",
            "learning_rate = 0.15\nseed = 2_147_483_646",
            "'LambdaMART': the seeds of .* add up to 2,147,483,648, and rankers take",
        ),
        ('model = "ssi"', 'model = "sssi"', "no model 'sssi'; did you mean 'ssi'"),
        ('ranker = "lambdamart"', 'ranker = "lamdamart"', "did you mean 'lambdamart'"),
        ('family = "vsm"', 'family = "vms"', "no column family 'vms'; did you mean 'vsm'"),
        ('source = "wikipedia-sections"', 'source = "bier"', "no source 'bier'.*'beir'"),
        ("words_per_query = 10", 'dump = "none.xml"', "there is no .*none.xml; check the name"),
        ('by = "group"', "folds = 3", "splits.1.folds: 3 folds: one part tests, .* give 4 or more"),
        ('by = "group"', "inner_parts = 4", "inner_parts is 4, but a fold trains on 3 parts"),
        ('stopwords = "english"', 'stopwords = "klingon"', "text: stopwords: no list"),
        ("[evaluation]", '[evaluation]\ncorrection = "hulm"', "did you mean 'holm'"),
    ],
)
def test_mistakes_are_named(tmp_path, before, after, message):
    assert before in DEMO
    with pytest.raises(InputError, match=message):
        load(tmp_path, DEMO.replace(before, after, 1))


def test_what_a_table_has_besides_numbers_is_told_once(tmp_path, recwarn):
    (tmp_path / "n.csv").write_text("docno,price,colour\nd,1.5,red\n", encoding="utf-8")
    family = '[[columns]]\nfamily = "numbers"\noptions = { file = "n.csv" }\n\n'
    config = load(tmp_path, DEMO.replace("[[columns]]", f"{family}[[columns]]", 1))
    assert config.columns[0].made(tmp_path).column_names == ["price"]
    told = [warning for warning in recwarn if "left out" in str(warning.message)]
    assert [str(one.message).partition(": ")[2] for one in told] == [
        "left out, as the first value is not a number, such as 7.25: colour ('red')"
    ]


def test_a_former_key_is_told_with_its_file(tmp_path):
    text = DEMO.replace('model = "ssi"', 'model = "ssi"\nstream = "body"', 1)
    with pytest.warns(FutureWarning, match=r"experiment\.toml: stream is now field"):
        models = {model.name: model for model in load(tmp_path, text).models}
    assert models["ssi"].field == "body"
    with pytest.warns(FutureWarning, match="^stream is now field"):  # no file is read here
        ModelConfig(name="a", model="ssi", stream="body")


def test_a_split_without_a_title_is_called_by_its_name(tmp_path):
    lines = [line for line in DEMO.splitlines() if "Unseen" not in line]
    splits = load(tmp_path, "\n".join(lines)).splits
    assert [split.title for split in splits] == ["by-query", "by-article"]
    assert all("Unseen" in split.title for split in load(tmp_path, DEMO).splits)


def test_models_are_told_their_terms(tmp_path):
    text = DEMO.replace('model = "ssi"', 'model = "ssi"\nterms = "both"', 1)
    recipes = {model.name: model.recipe for model in load(tmp_path, text).models}
    assert (recipes["ssi"].terms, recipes["lsa"].terms) == ("both", "words")


@pytest.mark.parametrize(
    ("of", "fits"),
    [
        ('model = "lsa"', 0),
        ('model = "plsa"', 3),  # its weight of words looks at labels
        ('model = "plsa"\nword_weight = 0.9', 0),
        ('model = "plsa"\nparams = { lambda2 = 0.9 }', 0),
        ('model = "bltm"', 3),
    ],
)
def test_a_score_is_fitted_again_where_it_looks_at_labels(tmp_path, of, fits):
    text = DEMO.replace("[[rankers]]", f'[[models]]\nname = "own"\n{of}\n\n[[rankers]]', 1)
    text = text.replace("seed = 0", "repeats = 3", 1)
    config = load(tmp_path, text.replace('score = "ssi"', 'score = "own"'))
    (system,) = (system for system in config.systems if system.score == "own")
    assert config.fits_of(system) == fits


def test_mistakes_of_types_do_not_hide_those_of_names(tmp_path):
    text = DEMO.replace("candidate_depth = 100", "candidate_dept = 100")
    text = text.replace("\nrank = 50", "\nrnak = 50").replace("turn = 2", "turn = -2")
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    for said in ("candidate_depth", "'rank'", "systems.9.turn", "3 mistakes"):
        assert said in str(error.value)


def test_rules_for_hard_queries_have_the_papers_defaults_and_may_take_all(tmp_path):
    given = EvaluationConfig(measures=("MAP",), comparisons=(("a", "b"),))
    assert (given.hard_thresholds, given.hard_quantiles) == ((0.5,), (0.25,))

    def rules(text):
        return load(tmp_path, DEMO.replace("[evaluation]", f"[evaluation]\n{text}", 1)).evaluation

    assert rules("hard_quantiles = [1.0]").hard_quantiles == (1.0,)
    for key in ("hard_thresholds", "hard_quantiles"):
        for wrong in (0.0, 1.01, 25):
            with pytest.raises(InputError, match=f"{key} must lie above 0 and not above 1"):
                rules(f"{key} = [{wrong}]")
        # Twice the same estimate would double the family of the correction.
        with pytest.raises(InputError, match=f"{key}: a value is named twice"):
            rules(f"{key} = [0.5, 0.50]")
    with pytest.raises(InputError, match="are empty: when is a query hard"):
        rules("hard_thresholds = []\nhard_quantiles = []")


RANKING = """
[collection]
source = "beir"
folder = "."
[[columns]]
family = "vsm"
[[models]]
name = "lsa"
model = "lsa"
min_document_frequency = 9
[[rankers]]
name = "LambdaMART"
ranker = "lambdamart"
[[splits]]
name = "by-query"
[[systems]]
name = "words"
columns = ["vsm"]
[[systems]]
name = "words+LSA"
columns = ["vsm", "lsa"]
[evaluation]
measures = ["MAP"]
comparisons = [["words+LSA", "words"]]
"""


def test_a_frequency_that_no_word_has_is_told_before_columns_are_computed(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(f'title = "Small"\n{RANKING}', encoding="utf-8")
    texts = with_ids({str(i): f"word text{i}" for i in range(8)})
    write_beir(tmp_path, texts, texts, test="".join(f"{i}\t{i}\t1\n" for i in range(8)))
    with pytest.raises(InputError, match=r"'lsa': min_document_frequency is 9, .* more than 8 doc"):
        run_file(path, data=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out" / "letor").exists()


def test_a_further_fit_adds_its_number_to_the_seed_of_what_learns_from_judgements():
    model, params = get_model("ssi"), {"rank": 2, "seed": 5}
    assert refitted(model, params, 0) == params
    assert refitted(model, params, 2) == {"rank": 2, "seed": 7}
    assert refitted(model, {"rank": 2}, 2) == {"rank": 2, "seed": 2}
    assert refitted(get_model("lsa"), {"rank": 2}, 2) == {"rank": 2}
