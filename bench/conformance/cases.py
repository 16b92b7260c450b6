"""The conformance models of the installed onnx package that need no network, with their inputs."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import onnx
from onnx import numpy_helper

#: Folders of ``onnx/backend/test/data`` whose models are in the package.
_STORED_KINDS = ("pytorch-converted", "pytorch-operator")
#: Modules whose own NumPy reference takes seconds to give what is expected.
_SLOW_MODULES = ("averagepool", "lppool", "maxpool")


@dataclass(frozen=True, slots=True)
class Case:
    """One conformance model.

    Attributes:
        name: as the onnx package calls it, e.g. ``test_add_bcast``.
        model: the serialized model.
        inputs: one value for each of the model's inputs: an array, list, tensor message, or None.
    """

    name: str
    model: bytes
    inputs: tuple[Any, ...]


def all_cases() -> list[Case]:
    """Return every model: of single operators, of their functions expanded, and small networks."""
    from onnx.backend.test.case.model import collect_testcases
    from onnx.backend.test.loader import load_model_tests

    cases = _node_cases(_node_modules())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, where a reference divides by 0 on purpose
        simple = [case for case in collect_testcases() if case.kind == "simple"]
    cases += map(_in_memory, simple)
    for kind in _STORED_KINDS:
        cases += [_stored(Path(case.model_dir)) for case in load_model_tests(kind=kind)]
    return sorted(cases, key=lambda case: case.name)


def sampled_cases(count: int, seed: int) -> list[Case]:
    """Return a sample of the single operators and expanded functions, drawn by a seed.

    Operators whose reference is slow are left out; ``all_cases`` has them.
    """
    modules = [name for name in _node_modules() if name.rpartition(".")[2] not in _SLOW_MODULES]
    cases = sorted(_node_cases(modules), key=lambda case: case.name)
    return random.Random(seed).sample(cases, count)


def _node_modules() -> list[str]:
    """Return the modules that make models of single operators; importing one makes them."""
    from onnx.backend.test.case import node

    return [
        name
        for package in (node, import_module(f"{node.__name__}.ai_onnx_ml"))
        for _, name, is_package in iter_modules(package.__path__, f"{package.__name__}.")
        if not is_package
    ]


def _node_cases(modules: Iterable[str]) -> list[Case]:
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            import_module(name)
    cases_by_kind: Sequence[Any] = node._NodeTestCases
    return [_in_memory(case) for case in cases_by_kind]


def _in_memory(case: Any) -> Case:
    inputs, _ = case.data_sets[0]
    return Case(case.name, case.model.SerializeToString(), tuple(inputs))


def _stored(folder: Path) -> Case:
    model = (folder / "model.onnx").read_bytes()
    count = len(onnx.load_model_from_string(model).graph.input)
    files = [folder / "test_data_set_0" / f"input_{index}.pb" for index in range(count)]
    inputs = [
        numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
        for file in files
        if file.exists()
    ]
    return Case(folder.name, model, tuple(inputs))
