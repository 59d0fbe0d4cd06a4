"""Models of columns in folds, fitted side by side."""

from threading import Lock

import numpy as np
import pytest
import toys
from toys import toy

from letor.errors import InputError
from ltr_features.columns.fold_fits import fit_folds, unfitted
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.trained import TrainedColumn
from ltr_features.text.collection import Judgements

PARAMS = {
    "ssi": {"rank": 8, "max_epochs": 3, "batch_size": 16, "n_negatives": 16},
    "bltm": {"n_topics": 4},
    "opca": {"rank": 4},
    "lsi": {"rank": 4},
    "cl-lsa": {},
}
PARTS = [np.arange(p, 18, 3) for p in range(3)]  # queries 0..17 train, 18 and 19 do not
#: The folds leave out other training queries each.
FOLDS = [[np.setdiff1d(part, [left]) for part in PARTS] for left in (1, 5, 9)]


def columns(folder, *names):
    """Query i and document j belong together if i % 4 == j % 4; queries 18 and 19 have no
    judgements."""
    titles = [f"title{j % 4}x{j % 3} title{j % 4}x{j % 5} common" for j in range(40)]
    queries = [f"title{i % 4}x{i % 2} query{i % 4}x{i % 3}" for i in range(20)]
    pairs = [(i, j, 1) for i in range(18) for j in range(40) if i % 4 == j % 4]
    judged = Judgements(*np.array(pairs, dtype=np.int64).T)
    bodies = [" ".join(queries), *[""] * 39]  # so that the index knows the queries' words
    context = toys.context_of(toy({"title": titles, "body": bodies}, queries, judged), threads=1)
    return [
        TrainedColumn(context, LearnedColumn(name, name, PARAMS[name], field="title"), folder)
        for name in names
    ]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_models_do_not_depend_on_how_many_are_fitted_at_a_time(tmp_path):
    names = list(PARAMS)
    alone = columns(tmp_path / "alone", *names)
    for one in alone:
        for parts in FOLDS:
            one.fold_models(parts)
    expected = content(tmp_path / "alone")
    assert len(expected) == 4 * 3 * 4 + 1  # lsi learns from documents, and is one model for all
    for threads, memory in ((1, None), (2, None), (16, None), (16, 1)):
        folder = tmp_path / f"{threads}-{memory}"
        fit_folds(columns(folder, *names), FOLDS, threads=threads, memory=memory)
        assert content(folder) == expected


def test_fits_that_do_not_fit_into_memory_together_run_one_at_a_time(tmp_path):
    [ssi] = columns(tmp_path, "ssi")
    running, most, counting = 0, 0, Lock()
    fit_parts = type(ssi).fit_fold

    class Counted(type(ssi)):
        def fit_fold(self, parts):
            nonlocal running, most
            with counting:
                running += 1
                most = max(most, running)
            fit_parts(self, parts)
            with counting:
                running -= 1

    ssi.__class__ = Counted
    fit_folds([ssi], FOLDS, threads=3, memory=1)
    assert most == 1
    assert not list(unfitted([ssi], FOLDS))


def test_finished_fits_are_counted_and_not_made_again(tmp_path):
    ssi, lsi = columns(tmp_path, "ssi", "lsi")
    ssi.fold_models(FOLDS[0])
    told = []
    fit_folds([ssi, lsi], FOLDS, threads=2, on_fit=lambda *done: told.append(done))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    before = content(tmp_path)
    fit_folds([ssi, lsi], FOLDS, threads=2, on_fit=lambda *done: told.append(done))
    assert len(told) == 4
    assert content(tmp_path) == before


def test_a_fit_that_fails_is_told(tmp_path):
    [ssi] = columns(tmp_path, "ssi")
    unjudged = [np.array([18]), np.array([19])]
    with pytest.raises(InputError, match="none of its training queries has a relevant document"):
        fit_folds([ssi], [*FOLDS, unjudged], threads=2)


def test_an_interrupt_stops_all_fits(tmp_path):
    [ssi] = columns(tmp_path, "ssi")

    def interrupted(model, epoch):
        raise KeyboardInterrupt

    ssi.on_progress = interrupted
    with pytest.raises(KeyboardInterrupt):
        fit_folds([ssi], FOLDS, threads=2)
    assert not list(tmp_path.glob("*.safetensors"))
