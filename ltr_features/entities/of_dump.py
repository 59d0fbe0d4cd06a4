"""The knowledge base of a dump, given the name of the dump: made when it is first needed."""

from __future__ import annotations

import os
import tempfile
import weakref
from functools import partial
from pathlib import Path

from letor.digests import file_digest
from letor.errors import InputError
from ltr_features.entities.knowledge import MARK, VERSION, KnowledgeBase
from ltr_features.entities.words import WORD_RULE

#: The name of the dump that is installed with gensim, see :func:`excerpt_path`.
EXCERPT_NAME = "wikipedia-excerpt"


def dump_path(dump: str) -> Path:
    """The file of a dump, given its path or :data:`EXCERPT_NAME`.

    Raises:
        InputError: there is no such file.
    """
    from ltr_features.sources.wikipedia import excerpt_path

    path = excerpt_path() if dump == EXCERPT_NAME else Path(dump)
    if not path.is_file():
        raise InputError(
            f"dump: no file {dump}; name a dump of Wikipedia, or {EXCERPT_NAME!r} for the one that "
            "is installed with gensim"
        )
    return path


def base_of_dump(
    dump: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    withhold_query_sections: bool = False,
) -> KnowledgeBase:
    """The knowledge base of a dump, made in this process unless ``folder`` has it.

    Args:
        dump: see :func:`dump_path`.
        folder: where knowledge bases are stored, each in its own folder, and looked up by the
            dump's content; None makes one that is deleted together with the object.
        withhold_query_sections: see :func:`build_knowledge_base`.

    Raises:
        InputError: as for :func:`dump_path` and :func:`build_knowledge_base`.
    """
    # Imported late: it takes longer than importing all columns that need no dump.
    from ltr_features.entities.build import build_knowledge_base

    path = dump_path(dump)
    build = partial(build_knowledge_base, path, withhold_query_sections=withhold_query_sections)
    if folder is None:
        # It is still mapped when it is removed, which Windows refuses.
        scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        build(scratch.name)
        base = KnowledgeBase.open(scratch.name)
        weakref.finalize(base, scratch.cleanup)
        return base
    kind = "-no-query-sections" if withhold_query_sections else ""
    made = Path(folder) / f"knowledge-{VERSION}.{WORD_RULE}{kind}-{file_digest(path)[:16]}"
    if not (made / MARK).is_file():
        build(made)
    return KnowledgeBase.open(made)
