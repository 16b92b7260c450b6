"""Reading files: whatever is no regular file may have no end."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from relational_tensat.base import files
from relational_tensat.base.errors import InputError


def test_a_device_has_a_limit_and_a_file_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    with pytest.raises(InputError, match=r"^/dev/zero: has more than 1 MiB, the limit$"):
        files.whole_content(Path("/dev/zero"))
    path = tmp_path / "large"
    path.write_bytes(b"x" * ((1 << 20) + 1))
    assert len(files.whole_content(path)) == (1 << 20) + 1
    with pytest.raises(InputError, match="large: has more than 1 MiB"):
        files.whole_content(path, 1 << 20)


def test_what_cannot_be_written_is_named_as_it_would_be_called(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    with pytest.raises(InputError) as error, files.write_aside(path) as aside:
        raise InputError(f"{aside / path.name}: cannot be written: No space left on device")
    assert str(error.value) == f"{path}: cannot be written: No space left on device"


def test_a_pipe_is_read_to_its_end_and_refused_where_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_FOR_A_WRITER_MS", 50)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"pipe: is a pipe that nobody writes into$"):
        files.whole_content(path)

    def write_slowly() -> None:
        with path.open("wb", buffering=0) as file:
            for part in (b"a" * 100_000, b"b"):
                time.sleep(0.1)  # longer than a first writer is waited for
                file.write(part)

    monkeypatch.setattr(files, "_FOR_A_WRITER_MS", 5000)
    writer = threading.Thread(target=write_slowly)
    writer.start()
    assert files.whole_content(path) == b"a" * 100_000 + b"b"
    writer.join()
