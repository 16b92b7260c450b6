"""What all tests share: no test reads or writes the caches of who runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relational_tensat.soundness.store import CACHE_VARIABLE


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield
