"""A small knowledge base whose articles are words of the contract tests' collection."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from dumps import dump_xml, page_xml

from ltr_features.entities.build import build_knowledge_base


@cache
def word_knowledge() -> Path:
    """Articles "Word0" to "Word19"; article i links to i + 1, i + 2 and i + 5."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_word_knowledge(folder)


def write_word_knowledge(folder: Path) -> Path:
    """The same, made in a folder that is there: its ``kb``."""
    pages = [
        page_xml(
            f"Word{i}",
            f"word{i} is word{(3 * i) % 50} of word{(7 * i) % 50} and "
            + " ".join(f"[[Word{(i + k) % 20}]]" for k in (1, 2, 5)),
            page_id=i + 1,
        )
        for i in range(20)
    ]
    (folder / "dump.xml").write_bytes(dump_xml(pages))
    build_knowledge_base(folder / "dump.xml", folder / "kb")
    return folder / "kb"
