"""What a run into the folder of an earlier one makes again: it leaves what a fresh one makes."""

import pytest
from folders import different, written
from small_studies import write_letor

from letor.column_names import write_rows
from letor.fold_files import read_folds
from ltr_features.studies.kinds.letor import LetorStudy
from ltr_features.studies.run import run_file
from ltr_features.studies.stages import NOTE

STUDY = """kind = "letor"
title = "Reuse"
folder = "toy"
measures = { MAP = "map", "P@1" = "p@1" }
compare_measures = ["MAP", "P@1"]
[[rankers]]
label = "steps"
ranker = "rankboost"
columns = ["1"]
params = { n_rounds = 1 }
grid = { n_thresholds = [1, 2], measure = ["map", "p@1"] }
[[rankers]]
label = "all"
ranker = "adarank"
grid = {}
"""
CLOCK = {"times.json", "times.csv", NOTE}


@pytest.fixture
def study(tmp_path):
    """The file of a study whose documents have ids."""
    write_letor(tmp_path)
    for part in sorted((tmp_path / "toy").iterdir()):
        lines = part.read_text().splitlines()
        part.write_text("".join(f"{row} #docid = d{i}\n" for i, row in enumerate(lines)))
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def differing(study):
    """What differs between a further run into ``out`` and a run into a new folder."""
    data = study.parent
    for out in ("out", "fresh"):
        run_file(study, data=data, out=data / out)
    found = different(data / "out", data / "fresh")
    return {name for name in found if name.rpartition("/")[2] not in CLOCK}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{ MAP = "map", "P@1" = "p@1" }', '{ "P@1" = "p@1", MAP = "map" }'),
        ('"P@1" = "p@1" }', '"P@1" = "p@1", "P@10" = "p@10" }'),
        ('"P@1" = "p@1" }', '"P@1" = "p@10" }'),
        ('["MAP", "P@1"]', '["P@1"]'),  # tells of equal scores by another measure
    ],
)
def test_other_measures_train_no_ranker_again(study, old, new):
    rankers = study.parent / "out" / "rankers"
    run_file(study, data=study.parent, out=rankers.parent)
    before = written(rankers)
    study.write_text(STUDY.replace(old, new, 1))
    assert not differing(study)
    assert written(rankers) == before


@pytest.mark.parametrize("new", ['measure = ["map", "p@1"], n_thresholds = [1, 2]',
                                 'n_thresholds = [1, 3], measure = ["map", "p@1"]'])  # fmt: skip
def test_another_grid_or_order_of_it_makes_its_rankers_again(study, new):
    rankers = study.parent / "out" / "rankers"
    run_file(study, data=study.parent, out=rankers.parent)
    before = written(rankers, "result.json")
    study.write_text(STUDY.replace('n_thresholds = [1, 2], measure = ["map", "p@1"]', new))
    assert not differing(study)
    changed = written(rankers, "result.json").items() - before.items()
    assert {path.parent.name for path, _ in changed} == {"steps"}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('columns = ["1"]', 'columns = ["2"]', {"steps"}),
        ("n_rounds = 1", "n_rounds = 2", {"steps"}),
        ('ranker = "adarank"', 'ranker = "listnet"', {"all"}),
        ('folder = "toy"', 'folder = "toy"\ntune_measure = "map"', {"steps", "all"}),
        ('folder = "toy"', 'folder = "toy"\nnotes = ["a note"]', set()),
    ],
)
def test_every_setting_counts_for_the_rankers_that_depend_on_it(study, old, new, changed):
    def keys():
        planned = LetorStudy(LetorStudy.read(study, study.parent), "out", study.parent).stages()
        return {stage.name: stage.key for stage in planned}

    before = keys()
    study.write_text(STUDY.replace(old, new, 1))
    after = keys()
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {
        name for name in before if name.rpartition("/")[2] in changed
    }


def test_other_document_ids_are_those_of_the_runs(study):
    run_file(study, data=study.parent, out=study.parent / "out")
    part = study.parent / "toy" / "S1.txt"
    part.write_text(part.read_text().replace("= d1\n", "= other\n"))
    assert not differing(study)


def test_scores_count_where_rows_differ_between_folds(study):
    """The rows of such folds are not compared, but the files that they come from."""
    data = study.parent
    rows, folds = read_folds(data / "toy")
    for number, fold in enumerate(folds):
        for name, part in zip(("train", "vali", "test"), fold.split(rows), strict=True):
            own = part.with_columns(["own"], part.y * number)
            write_rows(own, data / "apart" / fold.name / f"{name}.txt")
    queries = [rows.query_ids[number] for number in rows.query_index]
    pairs = list(zip(queries, rows.document_ids, range(len(rows)), strict=True))
    scores, families = data / "mine.tsv", 'options = { files = { mine = "mine.tsv" } }'
    study.write_text(
        STUDY.replace('"toy"', '"apart"').replace('["1"]', '["mine"]')
        + f'[[columns]]\nfamily = "scores"\n{families}\n'
    )
    for sign in (1, -1):
        scores.write_text(
            "qid\tdocno\tscore\n"
            + "".join(f"{query}\t{document}\t{sign * row}\n" for query, document, row in pairs)
        )
        run_file(study, data=data, out=data / "out")
    assert not differing(study)
