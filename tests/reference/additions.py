"""Documents to be added to a pipeline on the topics."""

from __future__ import annotations

#: Number of documents of the topics.
N = 60


#: A copy of d3 under another id; one that replaces d4; one of unknown words.
def news(collection):
    body, title, url = (collection.fields[s] for s in ("body", "title", "url"))
    return ["copy", "d4", "odd"], {
        "body": [body[3], f"{body[10]} common1", "common1 zzz zzz yyy"],
        "title": [title[3], title[10], ""],
        "url": [url[3], url[4], ""],
    }
