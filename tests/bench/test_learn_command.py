"""``python -m bench learn`` on two small models."""

from __future__ import annotations

import pytest

from bench.__main__ import main


def test_each_model_is_searched_alone_and_with_what_the_other_taught(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["learn", "vgg19", "bert", "--node-limit", "200", "--cpu-seconds", "0.2"]) == 0
    _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [row[0] for row in rows] == ["vgg19", "bert"]
    assert all(float(row[column]) < 7060 for row in rows for column in (2, 4))
    assert main(["learn", "vgg20"]) == 2
