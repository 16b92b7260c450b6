"""What Dynamo captures: it computes the same, with the weights of now, at other sizes and in parts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("onnxscript", reason="needs onnxscript, with which PyTorch writes ONNX")

from torch import nn  # noqa: E402
from torch._dynamo import convert_frame  # noqa: E402

from relational_tensat.adapters import torch_backend  # noqa: E402
from relational_tensat.torch import backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what PyTorch says of itself


class Gate(nn.Module):
    """Two products and a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(8, 16), nn.Linear(8, 16)

    def forward(self, x: Any) -> Any:
        return nn.functional.silu(self.gate(x)) * self.up(x)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the keys of what was optimized, or taken from what is kept."""
    torch._dynamo.reset()
    keys: list[str] = []
    artefact = torch_backend.artefact

    def counted(key: str, *others: Any) -> Any:
        keys.append(key)
        return artefact(key, *others)

    monkeypatch.setattr(torch_backend, "artefact", counted)
    torch.manual_seed(0)
    with torch.no_grad():
        yield keys


def compiled(module: nn.Module, **options: Any) -> Callable[..., Any]:
    own = partial(backend, options={"effort": "low"})
    function: Callable[..., Any] = torch.compile(module.eval(), backend=own, **options)
    return function


def assert_same(module: nn.Module, fast: Callable[..., Any], *args: Any) -> None:
    torch.testing.assert_close(fast(*args), module(*args), rtol=1e-5, atol=1e-5)


def test_weights_are_those_of_now(searches: list[str]) -> None:
    module, x = Gate(), torch.randn(1, 8)
    fast = compiled(module)
    assert_same(module, fast, x)
    module.up.weight.mul_(2)
    assert_same(module, fast, x)
    module.up.weight.data.mul_(2)
    assert_same(module, fast, x)
    module.up.weight = nn.Parameter(torch.randn(16, 8))
    assert_same(module, fast, x)
    assert len(set(searches)) == 4
    assert_same(module, fast, torch.randn(1, 8))
    assert len(searches) == 4


def test_weights_that_the_graph_holds_are_those_of_now(searches: list[str]) -> None:
    """Where Inductor is to freeze weights, Dynamo hands none over."""
    from torch._inductor import config

    module, x = Gate(), torch.randn(1, 8)
    fast = compiled(module)
    with config.patch(freezing=True), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing runs as it is
        assert_same(module, fast, x)
        module.up.weight.mul_(2)
        assert_same(module, fast, x)
        module.up.weight.data.mul_(2)
        assert_same(module, fast, x)
    assert len(set(searches)) == 3


def test_instances_of_a_class_have_their_own_weights(searches: list[str]) -> None:
    one, other, x = Gate(), Gate(), torch.randn(1, 8)
    fast, fast_other = compiled(one), compiled(other)
    for _ in range(2):
        assert_same(one, fast, x)
        assert_same(other, fast_other, x)
    assert len(searches) == 2


def test_one_search_serves_all_sizes_of_an_open_dimension(searches: list[str]) -> None:
    module = Gate()
    fast = compiled(module, dynamic=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "relational_tensat")  # that it runs as it is
        for size in (3, 5, 7):
            assert_same(module, fast, torch.randn(size, 8))
    assert len(searches) == 1


class Views(nn.Module):
    """Returns views of an input, of each other, and one that is not contiguous."""

    def forward(self, x: Any) -> Any:
        y = x * 2
        return y, y[1:].t(), x.view(-1), y.unsqueeze(0).expand(3, -1, -1), (x + 1).t()


@pytest.mark.parametrize("dynamic", [False, True])
def test_outputs_share_memory_as_in_pytorch(searches: list[str], dynamic: bool) -> None:
    module = Views()
    fast = compiled(module, dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "relational_tensat")
        for rows in (3, 5, 7) if dynamic else (3,):
            inputs = [torch.ones(rows + 1, 8)[1:] for _ in range(2)]
            expected, found = module(inputs[0]), fast(inputs[1])
            for place, (a, b) in enumerate(zip(expected, found, strict=True)):
                assert a.stride() == b.stride()
                for each in (
                    (expected, found) if place != 3 else ()
                ):  # that has one memory for three
                    each[place].add_(place + 1)
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(*inputs)
    assert searches


class ChangingAView(nn.Module):
    """Changes a view of its input, after Python was asked."""

    def forward(self, x: Any) -> Any:
        y = x.view(-1)
        z = y * 2
        torch._dynamo.graph_break()
        y.add_(1)
        return x + 0, z


def test_a_view_that_a_later_graph_changes_is_one(searches: list[str]) -> None:
    module, inputs = ChangingAView(), [torch.zeros(4, 8) for _ in range(2)]
    torch.testing.assert_close(compiled(module)(inputs[1]), module(inputs[0]))
    torch.testing.assert_close(*inputs)


def test_what_onnxruntime_does_not_run_runs_as_it_is(searches: list[str]) -> None:
    module, x = Gate(), torch.randn(3, 8)
    fast = compiled(module)
    assert_same(module, fast, x)
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.warns(UserWarning, match="onnxruntime does not run this"),
    ):
        assert_same(module, fast, x)
    assert_same(module, fast, x)


def test_no_thread_captures_a_graph_while_another_exports(
    searches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    export, free = torch.export.export, []

    def lock_is_free() -> None:
        free.append(convert_frame.compile_lock.acquire(blocking=False))

    def exported(*args: Any, **others: Any) -> Any:
        other = Thread(target=lock_is_free)
        other.start()
        other.join()
        return export(*args, **others)

    monkeypatch.setattr(torch.export, "export", exported)
    compiled(Gate())(torch.randn(4, 8))
    assert free == [False]


class Broken(nn.Module):
    """Python decides in the middle of it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any, places: Any) -> Any:
        y = self.first(x)
        y = self.last(y) if float(y.sum()) > 0 else self.last(-y)
        return Answer(y[places], (None, 3))


@dataclass
class Answer:
    """Of several parts."""

    rows: Any
    rest: tuple[None, int]


def test_breaks_make_several_graphs(searches: list[str]) -> None:
    module, fast = Broken(), None
    fast = compiled(module)
    for _ in range(4):
        x, places = torch.randn(4, 8), torch.tensor([2, 0])
        found, expected = fast(x, places), module.forward(x, places)
        torch.testing.assert_close(found.rows, expected.rows, rtol=1e-5, atol=1e-5)
        assert found.rest == (None, 3)
    assert len(searches) >= 2


class Counting(nn.Module):
    """Changes a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return x * self.calls


def test_a_graph_that_changes_a_buffer_runs_as_it_is(searches: list[str]) -> None:
    module = Counting()
    fast = compiled(module)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for turn in (1, 2, 3):
            assert fast(torch.ones(3)).tolist() == [turn] * 3
    told = [str(each.message) for each in caught if "relational_tensat" in str(each.message)]
    assert len(told) == 1
    assert "changes 'weight_" in told[0]


def test_gradients_are_inductors(searches: list[str]) -> None:
    module, x = Gate(), torch.randn(2, 8)
    with torch.enable_grad(), pytest.warns(UserWarning, match="Inductor compiles it: gradients"):
        fast = compiled(module)
        fast(x).sum().backward()
        found = module.up.weight.grad.clone()
        module.zero_grad()
        module(x).sum().backward()
    torch.testing.assert_close(found, module.up.weight.grad, rtol=1e-4, atol=1e-5)
    assert searches == []
