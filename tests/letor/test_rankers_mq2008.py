"""Our own rankers on the official folds of MQ2008: in the range of the published results."""

import numpy as np
import pytest

from letor.evaluation import evaluate
from letor.fold_files import read_folds
from letor.measures import parse_measure
from letor.rankers.registry import get_ranker


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "parameters"),
    [("adarank", {}), ("rankboost", {}), ("listnet", {}), ("ranknet", {"hidden": 0})],
)
def test_five_folds_reach_the_published_range(name, parameters, data_folder):
    """Textbook NDCG@20 about .52 and official MAP about .475 on average over the folds."""
    data, folds = read_folds(data_folder / "letor4_mq2008", n_columns=46)
    measures = [parse_measure("ndcg@20"), parse_measure("letor4:map")]
    means = []
    for fold in folds:
        train, valid, test = fold.split(data)
        scores = get_ranker(name)(**parameters).fit(train, valid).predict(test)
        means.append(evaluate(test, scores, measures).mean())
    ndcg, average_precision = np.mean(means, axis=0)
    assert 0.51 < ndcg < 0.55
    assert 0.46 < average_precision < 0.51
