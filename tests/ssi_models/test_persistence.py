"""Files of tensors appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from ssi_models.persistence import save_tensors


def test_a_file_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def full(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("ssi_models.persistence.save_file", full)
    with pytest.raises(OSError, match=r"x\.safetensors: cannot be written \(No space left"):
        save_tensors(tmp_path / "x.safetensors", {}, {"a": np.zeros(1, np.float32)})
    assert list(tmp_path.iterdir()) == []
