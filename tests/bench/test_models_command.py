from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import main
from bench.models import MODELS
from relational_tensat.formats import load_model


def test_it_writes_all_models_small_and_readable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "models"
    assert main(["models", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {f"{name}.json" for name in MODELS}
    assert capsys.readouterr().out.splitlines() == [str(folder / f"{name}.json") for name in MODELS]
    for name, build in MODELS.items():
        path = folder / f"{name}.json"
        assert 5_000 < path.stat().st_size < 500_000
        loaded, model = load_model(path), build()
        assert loaded.nodes == model.nodes
        assert loaded.types == model.types
        assert loaded.outputs == model.outputs


def test_a_folder_that_cannot_be_made_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["models", str(blocked)]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {blocked}: cannot be made a folder")
    assert message.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["modles", "x"], ["models"]])
def test_usage_errors_end_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
