from __future__ import annotations

from bench.common.model_files import BLOCKS, LIGHT, model_files


def test_all_models_have_a_file() -> None:
    files = model_files()
    assert list(files) == [*BLOCKS, *LIGHT]
    assert len(LIGHT) == 9
    assert all(path.is_file() for path in files.values())
