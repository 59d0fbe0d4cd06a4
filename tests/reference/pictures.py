"""The pictures of the README and the documentation: the first screen of a report, on a desktop and
on a phone.

    PYTHONPATH=tests/reference python tests/reference/pictures.py ltr-demo/report/report.html docs
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from browser import Browser

#: Width and height of each picture, and its pixels per unit.
SCREENS = {"report.png": (1200, 640, 1.0), "report-phone.png": (390, 800, 1.6)}


def take(report: Path, folder: Path) -> None:
    """Write the pictures of a report into the folder."""
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for name, (width, height, scale) in SCREENS.items():
            browser.command("Emulation.setScrollbarsHidden", hidden=True)
            browser.open(report.resolve(), width=width)
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
            picture = browser.command("Page.captureScreenshot", clip=clip)
            (folder / name).write_bytes(base64.b64decode(picture["data"]))


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
