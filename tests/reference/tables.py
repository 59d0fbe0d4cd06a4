"""A product search in tables, and tables in files of each format that they are read from."""

import gzip
import json
from pathlib import Path

import pandas as pd

PRODUCTS = pd.DataFrame(
    {
        "sku": ["007", "8", "9"],
        "name": ["Red shoe", "Blue, big hat", None],
        "text": ["for running", 'a "hat"', "x"],
        "bullets": ["light\nand red", "", "y"],
        "page": ["/shoe", "/hat", "/x"],
    }
)
RATINGS = pd.DataFrame(
    {
        "query": ["sneaker", "sneaker", "cap"],
        "sku": ["007", "8", "8"],
        "label": ["Exact", "None", "Exact"],
    }
)
COLUMNS = {"id": "sku", "title": "name", "body": ["text", "bullets"], "url": "page"}
JUDGED = {"text": "query", "document": "sku", "grade": "label"}
OPTIONS = {
    "document_columns": COLUMNS,
    "judgement_columns": JUDGED,
    "grades": {"Exact": 3, "None": 0},
}


def save_table(table: pd.DataFrame, path: Path) -> Path:
    """Write a table in the format that the name says, and return the path."""
    kind = path.suffixes[0]
    if kind == ".parquet":
        table.to_parquet(path)
        return path
    if kind == ".jsonl":
        records = table.astype(object).where(table.notna(), None).to_dict("records")
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    elif kind == ".json":
        text = table.to_json(orient="records", indent=2)
    else:
        text = table.to_csv(index=False, sep="," if kind == ".csv" else "\t")
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path
