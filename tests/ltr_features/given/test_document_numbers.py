"""Numbers of documents as columns."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from given import PAIRS

from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning, RankerWarning
from letor.rankers import get_ranker
from ltr_features.columns.document_numbers import DocumentNumbers
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.feature_table import build_columns
from ltr_features.scoring import ScoringPipeline


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_numbers_of_documents_are_the_same_for_every_query(context, tmp_path, form):
    table = pd.DataFrame(
        {"sku": ["d1", "x", "d0", "d1"], "Unit price": [2.5, 9, None, 2.5],
         "stock": [True, True, False, True], "name": list("abcd")}
    )  # fmt: skip
    path = tmp_path / f"products.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    with pytest.warns(LetorWarning, match=r"left out, as the first value .*: name \("):
        family = DocumentNumbers(path, missing=-1)
    family.check(context)
    assert family.column_names == ["unit_price", "stock"]
    found = family.compute(context, PAIRS).tolist()
    assert found == [[-1, 0], [2.5, 1], [-1, -1], [2.5, 1], [-1, -1]]
    assert family.n_missing(context, PAIRS) == [3, 2]
    told = "3 of 5 rows (60.0 %) have no number and get -1"
    assert family.missing_remark("unit_price", 3, 5) == told
    dear = DocumentNumbers(path, numbers=["Unit price", "stock"], missing={"unit_price": 900})
    found = dear.compute(context, PAIRS).tolist()
    assert found == [[900, 0], [2.5, 1], [900, 0], [2.5, 1], [900, 0]]
    for wrong in (None, "lowest", {"stock": None}, {"stock": True}, 10**400, {"stock": np.inf}):
        with pytest.raises(InputError, match="missing must be"):
            DocumentNumbers(path, numbers=["stock"], missing=wrong)
    with pytest.raises(InputError, match=r"the first value of 'name' is '.*', .* such as 7\.25"):
        DocumentNumbers(path, numbers=["name"])
    with pytest.raises(InputError, match="no column cost; it has 'sku'"):
        DocumentNumbers(path, numbers=["cost"])


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_lists_of_objects_are_no_numbers_of_documents(context, tmp_path, form):
    table = pd.DataFrame(
        {"id": ["d0", "d1"], "parts": [None, [{"name": "flour"}]], "kcal": [120, 80]}
    )
    path = tmp_path / f"items.{form}"
    if form == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    with pytest.warns(LetorWarning, match=r"left out, as the first value .*: parts \('\{...\}'\)"):
        family = DocumentNumbers(path)
    assert family.column_names == ["kcal"]
    assert family.compute(context, PAIRS)[:2].tolist() == [[120], [80]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,n\nd0,1\nd0,2\n", "document 'd0' has other numbers in a later row than in its first"),
        ("id,n\nd0,inf\n", "line 2: 'n' is inf: infinite, .* missing values: leave it empty"),
        ("id,n\nd0,1\nd1,x\n", "line 3: 'n' is 'x', not a number"),
        ("id,n\n,1\n", "line 2: the id 'id' is empty"),
        ("id,n\nx,1\n", "none of its 1 document ids"),
        ("id,n\n", "no rows"),
        ("id,n\nd0,a\n", "no column of numbers"),
        ("qid,docno,n\na,d0,1\n", "has queries, column 'qid': numbers of pairs are scores"),
        ("product,n\nd0,1\n", "name the one of document ids by the option document"),
    ],
)
def test_bad_numbers_of_documents_are_refused_by_file(context, tmp_path, text, message):
    path = tmp_path / "numbers.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        DocumentNumbers(path).check(context)
    assert str(path) in str(error.value)
    with pytest.raises(InputError, match=r"--option numbers\.file=products\.csv"):
        DocumentNumbers().check(context)


@pytest.mark.filterwarnings("error::letor.errors.LetorWarning")  # told once is enough
def test_a_service_knows_the_numbers_of_its_documents(context, tmp_path):
    """For queries that it has never seen, other than scores."""
    path = tmp_path / "numbers.csv"
    path.write_text("id,n,name\nd0,1,a\nd1,3,b\nd2,2,c\n")
    with pytest.warns(LetorWarning, match="left out, as the first value is not a number"):
        features = FeatureBuilder([DocumentNumbers(path)]).fit(context)
    rows = RankingData(np.float32([[1], [3], [2]]), [0, 2, 1], ["a"], [0, 0, 0], ["n"])
    pipeline = ScoringPipeline(features, get_ranker("coordinate-ascent")().fit(rows))
    pipeline.save(tmp_path / "service")
    served = ScoringPipeline.load(tmp_path / "service")
    assert [r.docno for r in served.rank("two three", 3).itertuples()] == ["d1", "d2", "d0"]


def test_a_ranker_is_told_of_another_substitute_than_it_was_trained_with(context, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("id,threads\nd0,1\nd1,3\n")
    rows, other = (
        build_columns(context, PAIRS, [DocumentNumbers(path, missing={"threads": value})])
        for value in (9, 8)
    )
    judged = replace(rows, y=np.float32([2, 1, 0, 1, 0]), missing=None)
    ranker = get_ranker("coordinate-ascent")().fit(judged)
    ranker.predict(rows)
    with pytest.warns(RankerWarning, match=r"\(threads\) made .*missing = 8 instead of 9"):
        ranker.predict(other)
