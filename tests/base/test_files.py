"""Reading files: whatever is no regular file may have no end."""

from __future__ import annotations

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
