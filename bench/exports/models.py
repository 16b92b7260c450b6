"""The models in a folder: made there by an interpreter that has PyTorch, unless they are there already."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relational_tensat.base.errors import InputError

#: Values by the name of an input.
Inputs = dict[str, npt.NDArray[np.generic]]

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Made:
    """A model's file, and beside it sets of inputs: ``NAME.npz`` with ``0/INPUT``, ``1/INPUT``, …"""

    name: str
    path: Path

    def input_sets(self) -> list[Inputs]:
        """Return the sets of inputs in their order; the first has the sizes that are optimized at."""
        sets: dict[str, Inputs] = {}
        with np.load(self.path.with_suffix(".npz")) as arrays:
            for key, array in arrays.items():
                index, _, name = key.partition("/")
                sets.setdefault(index, {})[name] = array
        return [sets[index] for index in sorted(sets)]


def make_all(names: list[str], folder: Path, python: str | None) -> Iterator[Made]:
    """Give one model after another; those that are not in the folder are made.

    Args:
        python: an interpreter with PyTorch and the libraries; None where all is there.

    Raises:
        InputError: a model is not there and there is no interpreter, or making it failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        made = Made(name, folder / f"{name}.onnx")
        if not made.path.with_suffix(".npz").exists():
            _make(name, folder, python)
        yield made


def _make(name: str, folder: Path, python: str | None) -> None:
    if python is None:
        raise InputError(
            f"{folder}: has no {name}; --python PATH of an interpreter with PyTorch makes it"
        )
    print(f"{name}: made ...", file=sys.stderr, flush=True)
    command = [python, "-m", "bench.exports.makers", name, str(folder.resolve())]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    try:
        process = subprocess.run(
            command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise InputError(f"{python}: cannot be run: {error.strerror}") from None
    if process.returncode:
        reason = (process.stderr.splitlines() or ["no message"])[-1]
        raise InputError(f"{name}: cannot be made by {python}: {reason}")
