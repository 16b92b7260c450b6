"""What tests of fusion share: fewer random tests, as their number is not what is checked here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relational_tensat.mugraph.verify import verification


@pytest.fixture(autouse=True, scope="package")
def _few_tests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "ERROR", 0.1)
        yield
