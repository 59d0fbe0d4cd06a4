"""A page in headless Chromium, driven by the DevTools protocol over two pipes: real key presses,
dark mode, narrow windows, print."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_KEYS = {"Tab": 9, "Enter": 13, " ": 32}


class Browser:
    """One tab. Use it as a context manager.

    Args:
        folder: for the browser's profile.
    """

    def __init__(self, folder: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        flags = (*FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}")
        command = shlex.join([str(BROWSER), *flags, "about:blank"])
        # The protocol's pipes are the descriptors 3 and 4.
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command} 3<&{to_browser} 4>&{from_browser}"],
            pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None

    def __enter__(self) -> Self:
        targets = self.command("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.command("Page.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        self.command("Browser.close")
        os.close(self._write)
        os.close(self._read)
        self._process.wait(timeout=30)

    def open(self, page: Path, width: int = 1200, scheme: str = "light", media: str = "") -> None:
        """Load the page in a window of that width, for that colour scheme and medium."""
        self.command(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        self.command("Page.navigate", url=page.as_uri())
        self.wait("Page.loadEventFired")

    def press(self, *keys: str) -> None:
        """Press and release keys: Tab, Enter, " "."""
        for key in keys:
            about = {"key": key, "windowsVirtualKeyCode": _KEYS[key]}
            typed = {"Enter": "\r", " ": " "}.get(key, "")
            kind = "keyDown" if typed else "rawKeyDown"
            self.command("Input.dispatchKeyEvent", type=kind, text=typed, **about)
            self.command("Input.dispatchKeyEvent", type="keyUp", **about)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression, as JSON has it; of a promise, what it promises."""
        answer = self.command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def settle(self) -> None:
        """Until what the page has begun is done."""
        self.evaluate("new Promise(done => setTimeout(() => done(0), 300))")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait(self, event: str) -> None:
        """Until the browser tells of the event."""
        while self._receive().get("method") != event:
            pass

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._read, 1 << 16)
            if not got:
                raise RuntimeError("the browser has gone")
            self._rest += got
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)
