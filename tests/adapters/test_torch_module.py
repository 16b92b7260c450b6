"""A module of PyTorch in and out: it computes the same, and never with weights of before."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import relational_tensat
from relational_tensat import InputError, Options, UsageError
from relational_tensat.cost.race import RaceResult, Standing

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("onnxscript", reason="needs onnxscript, with which PyTorch writes ONNX")

from torch import nn  # noqa: E402
from torch.nn.utils.prune import l1_unstructured  # noqa: E402

from relational_tensat.adapters import artefacts  # noqa: E402
from relational_tensat.custom_ops import sessions  # noqa: E402
from relational_tensat.run.stages import kernel_library  # noqa: E402
from relational_tensat.torch import OptimizedModule, backend, optimize_module  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what PyTorch says of itself
_QUICK = Options.of(effort="low")
_OPEN = torch.export.Dim.DYNAMIC


class Gated(nn.Module):
    """Two products, a gate, and results of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)
        self.register_buffer("shift", torch.ones(8))
        self.factor = torch.full((8,), 2.0)
        self.number, self.power = torch.tensor(1.0), 1.0
        self.square, self.listed = nn.Parameter(torch.randn(8, 8)), [torch.ones(8)]
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Any, mask: Any = None, *, scale: float = 1.0) -> Any:
        y = self.norm(self.down(nn.functional.silu(self.gate(x)) * self.up(x)))
        y = (y @ self.square) * (self.number * self.power) + self.listed[0]
        y = y * self.factor + self.shift
        if mask is not None:
            y = torch.where(mask, y, 0)
        return {"y": y * scale, "x": x, "none": None, "count": 3, "pair": (y > 0, y.sum())}


@pytest.fixture
def module() -> Gated:
    torch.manual_seed(0)
    return Gated().eval()


def made(module: nn.Module, *args: Any, **kwargs: Any) -> OptimizedModule:
    fast, result = optimize_module(module, args, kwargs, options=_QUICK)
    assert fast.result is result
    return fast


def assert_same(module: nn.Module, fast: nn.Module, *args: Any, **kwargs: Any) -> None:
    with torch.no_grad():
        expected, found = module(*args, **kwargs), fast(*args, **kwargs)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_arguments_and_outputs_are_nested_as_before(module: Gated) -> None:
    x, mask = torch.randn(3, 8), torch.rand(3, 8) > 0.5
    fast = made(module, x, mask=mask, scale=0.5)
    assert_same(module, fast, x, mask=mask, scale=0.5)
    assert_same(module, fast, x, mask, scale=0.5)
    assert_same(module, fast, x=x, mask=mask, scale=0.5)


def test_inputs_may_lie_in_memory_in_any_way(module: Gated) -> None:
    fast = made(module, torch.randn(3, 8))
    assert_same(module, fast, torch.randn(8, 3).T)
    assert_same(module, fast, torch.randn(6, 8)[::2])


def test_open_dimensions_need_no_second_search(module: Gated) -> None:
    fast, _ = optimize_module(
        module, (torch.randn(3, 8),), dynamic_shapes={"x": {0: _OPEN}}, options=_QUICK
    )
    for size in (1, 7, 0):
        assert_same(module, fast, torch.randn(size, 8))
    assert fast.optimizations == 1


def _in_place(module: Gated) -> None:
    with torch.no_grad():
        module.up.weight.mul_(2)


def _uncounted(module: Gated) -> None:
    module.up.weight.data.mul_(2)


def _by_numpy(module: Gated) -> None:
    module.gate.bias.detach().numpy()[:] += 1


def _another_parameter(module: Gated) -> None:
    module.up.weight = nn.Parameter(torch.randn(16, 8))


def _another_storage(module: Gated) -> None:
    module.up.weight.data = torch.randn(16, 8)


def _another_part(module: Gated) -> None:
    module.down = nn.Linear(16, 8)


def _loaded(module: Gated) -> None:
    module.load_state_dict(Gated().state_dict())


def _buffer(module: Gated) -> None:
    module.shift.zero_()


def _attribute(module: Gated) -> None:
    module.factor = torch.full((8,), 3.0)


def _one_element(module: Gated) -> None:
    module.number = torch.tensor(4.0)


def _in_a_list(module: Gated) -> None:
    module.listed[0].mul_(5)


def _plain_number(module: Gated) -> None:
    module.power = 3.0


def _of_a_layer(module: Gated) -> None:
    module.norm.eps = 10.0


def _transposed(module: Gated) -> None:
    module.square.data = module.square.data.T


def _in_the_dictionary(module: Gated) -> None:
    module.gate._parameters["weight"] = nn.Parameter(torch.randn(16, 8))


def _other_dictionary(module: Gated) -> None:
    parameters = {name: nn.Parameter(each * 2) for name, each in module.gate.named_parameters()}
    module.gate.__dict__ = {**vars(module.gate), "_parameters": parameters}


def _parametrized(module: Gated) -> None:
    nn.utils.parametrize.register_parametrization(module.up, "weight", Doubled())


def _weight_norm(module: Gated) -> None:
    nn.utils.parametrizations.weight_norm(module.up)
    with torch.no_grad():
        module.up.parametrizations.weight.original0.mul_(3)


def _pruned(module: Gated) -> None:
    l1_unstructured(module.gate, "weight", amount=0.5)


def _vector(module: Gated) -> None:
    flat = nn.utils.parameters_to_vector(module.parameters())
    nn.utils.vector_to_parameters(flat * 2, module.parameters())


def _other_function(module: Gated) -> None:
    forward = module.forward
    module.forward = lambda x: {**forward(x), "y": forward(x)["y"] + 1}


def _hooked(module: Gated) -> None:
    module.up.register_forward_hook(lambda part, inputs, output: output * 2)


def _hooked_before(module: Gated) -> None:
    module.register_forward_pre_hook(lambda part, inputs: (inputs[0] + 1,))


class Doubled(nn.Module):
    """A parametrization."""

    def forward(self, x: Any) -> Any:
        return 2 * x


@pytest.mark.parametrize(
    "change",
    [
        _in_place, _uncounted, _by_numpy, _another_parameter, _another_storage, _another_part, _loaded,
        _buffer, _attribute, _one_element, _in_a_list, _plain_number, _of_a_layer, _transposed,
        _in_the_dictionary, _other_dictionary, _parametrized, _weight_norm, _pruned, _vector,
        _other_function, _hooked, _hooked_before,
    ],
)  # fmt: skip
def test_weights_that_change_are_seen(module: Gated, change: Callable[[Gated], None]) -> None:
    x = torch.randn(3, 8)
    fast = made(module, x)
    before = fast(x)["y"].clone()
    change(module)
    assert_same(module, fast, x)
    assert not torch.allclose(before, fast(x)["y"])
    assert fast.optimizations == 2


def test_one_element_that_is_another_tensor_is_seen_later(module: Gated) -> None:
    x = torch.randn(3, 8)
    fast = made(module, x)
    module.number, module.power = torch.tensor(1.0), torch.tensor(1.0)  # they equal those of before
    assert_same(module, fast, x)
    for each in (module.number, module.power):
        each.mul_(2)
        assert_same(module, fast, x)


def test_a_copy_has_its_own_weights(module: Gated) -> None:
    x = torch.randn(3, 8)
    fast = made(module, x)
    other = copy.deepcopy(module)
    with torch.no_grad():
        other.up.weight.mul_(2)
    assert_same(module, fast, x)
    assert_same(other, made(other, x), x)


def test_an_optimized_module_is_copied_and_pickled(module: Gated) -> None:
    x = torch.randn(3, 8)
    fast = made(module, x)
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert_same(module, other, x)
        with torch.no_grad():
            other._original.up.weight.mul_(2)
        assert_same(other._original, other, x)
        assert_same(module, fast, x)


class Deciding(nn.Module):
    """Python decides by a size: an export has one way only."""

    def forward(self, x: Any, y: Any) -> Any:
        if x.shape[0] > 3 and x.shape[0] % 2 == 0:
            return x * 2 + y
        return x * 3 - y


def test_sizes_that_were_not_exported_are_the_modules_own() -> None:
    module = Deciding().eval()
    shapes = {"x": {0: _OPEN}, "y": {0: _OPEN}}
    args = (torch.randn(6, 8), torch.randn(6, 8))
    fast, _ = optimize_module(module, args, dynamic_shapes=shapes, options=_QUICK)
    for rows in (6, 8, 2, 7, 1):
        x, y = torch.randn(rows, 8), torch.randn(rows, 8)
        exported = rows in (6, 8)
        with nullcontext() if exported else pytest.warns(UserWarning, match="does not hold"):
            assert_same(module, fast, x, y)
    with pytest.warns(UserWarning, match="does not hold"):  # equal sizes were exported
        assert_same(module, fast, torch.randn(6, 8), torch.randn(1, 8))
    fast, _ = optimize_module(
        nn.Linear(8, 4).eval(), args[:1], dynamic_shapes=({0: _OPEN},), options=_QUICK
    )
    with pytest.warns(UserWarning, match="> 0 does not hold"):
        assert fast(torch.empty(0, 8)).shape == (0, 4)


def test_what_changes_nothing_is_not_optimized_again(module: Gated) -> None:
    x = torch.randn(3, 8)
    fast = made(module, x)
    for _ in range(3):
        fast(x)
        module(x)
        module.power = 1.0
        module.eval()
    assert fast.optimizations == 1


def test_training_mode_is_refused_later_too(module: Gated) -> None:
    x = torch.randn(3, 8)
    fast = made(module, x)
    module.train()
    with pytest.raises(UsageError, match="is in training mode"):
        fast(x)
    module.eval()
    assert_same(module, fast, x)


def test_results_are_not_those_of_the_next_call(module: Gated) -> None:
    fast = made(module, torch.randn(3, 8))
    first = fast(torch.zeros(3, 8))["y"]
    kept = first.clone()
    fast(torch.ones(3, 8))
    assert torch.equal(first, kept)


def test_what_was_made_once_is_found_again(module: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(3, 8)
    first = made(module, x)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("optimized again")

    monkeypatch.setattr("relational_tensat.adapters.artefacts.optimize", never)
    again = made(module, x)
    assert_same(module, again, x)
    assert again.result.cost_after_us == first.result.cost_after_us


def test_what_was_kept_and_cut_is_made_again(module: Gated) -> None:
    x = torch.randn(5, 8)
    entry = made(module, x)._artefact.path.parent
    (entry / "result.pickle").write_bytes(b"\x80")
    assert_same(module, made(module, x), x)


def test_the_file_is_saved(module: Gated, tmp_path: Path) -> None:
    import onnxruntime

    x = torch.randn(3, 8)
    path = made(module, x).save(tmp_path / "fast.onnx")
    session = onnxruntime.InferenceSession(str(path))
    found = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    torch.testing.assert_close(
        torch.from_numpy(found), module(x)["y"].detach(), rtol=1e-5, atol=1e-5
    )


def test_what_cannot_be_is_one_line(module: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(3, 8)
    with pytest.raises(UsageError, match=r"Gated: is in training mode, expected model\.eval\(\)"):
        optimize_module(Gated().train(), (x,))
    fast = made(module, x)
    with pytest.raises(UsageError, match="as when exported"):
        fast(x, scale=2.0)
    with pytest.raises(UsageError, match="missing a required argument: 'x'"):
        fast()
    with pytest.raises(UsageError, match="requires a gradient"):
        fast(x.clone().requires_grad_())
    with pytest.raises(UsageError, match=r"is torch\.float64 on cpu, expected torch\.float32"):
        fast(x.double())
    with pytest.raises(UsageError, match=r"is \[4, 8\], expected \[3, 8\]"):
        fast(torch.randn(4, 8))
    with (
        pytest.raises(InputError, match="onnxruntime does not run this"),
        monkeypatch.context() as at,
    ):
        at.setattr(artefacts, "optimize", None)  # it is refused before any search
        made(Gated().bfloat16().eval(), x.bfloat16())
    with pytest.raises(InputError, match=r"^Negative: node 'node_neg'"):
        made(Negative().eval(), x.byte())
    with pytest.raises(InputError, match=r'^Float8: does not run for the example: "add_stub"'):
        made(Float8().eval(), x)


class Negative(nn.Module):
    """Has an operator that ONNX does not have for bytes."""

    def forward(self, x: Any) -> Any:
        return -x


class Float8(nn.Module):
    """Adds numbers that PyTorch exports, and does not add."""

    def forward(self, x: Any) -> Any:
        return (x.to(torch.float8_e4m3fn) + x.to(torch.float8_e4m3fn)).float()


class Half(nn.Module):
    """Operators that PyTorch's exporter computes in another type than they return."""

    def forward(self, x: Any) -> Any:
        return x.abs(), x.sum(-1), x.amax(-1), x.relu()


def test_outputs_have_the_types_of_the_module() -> None:
    x = torch.randn(3, 8).half()
    assert_same(Half(), made(Half().eval(), x), x)


def test_a_change_in_place_that_nobody_sees_is_none() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True)).eval()
    x = torch.randn(3, 8)
    assert_same(module, made(module, x), x)


def test_the_fastest_runtime_computes_it(module: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that OpenVINO computes: outputs of earlier calls stay, sizes vary, weights are watched."""
    pytest.importorskip("openvino", reason="needs OpenVINO")
    from relational_tensat.adapters.artefacts import Artefact

    monkeypatch.setattr(Artefact, "runtime", "openvino")
    x = torch.randn(3, 8)
    shapes = {"x": {0: _OPEN}, "mask": {0: _OPEN}}
    options = Options.of(effort="low")
    mask = torch.rand(3, 8) > 0.5
    fast, _ = optimize_module(module, (x, mask), dynamic_shapes=shapes, options=options)
    assert fast.runtime == "openvino"
    with torch.no_grad():
        first = fast(x, mask)["y"].clone()
        kept = fast(x, mask)["y"]
        for rows in (3, 5, 1):
            other = torch.randn(8, rows).T  # not contiguous
            assert_same(module, fast, other, torch.rand(rows, 8) > 0.5)
        torch.testing.assert_close(kept, first)
        module.up.weight.mul_(2)
        assert_same(module, fast, x, mask)
    with pytest.raises(UsageError, match=r"expected torch\.float32 on cpu"):
        fast(x.double(), mask)


def test_a_race_of_runtimes_names_the_one_that_computes(module: Gated) -> None:
    pytest.importorskip("openvino", reason="needs OpenVINO")
    x = torch.randn(3, 8)
    fast, result = optimize_module(module, (x,), options=Options.of(runs_on="best", effort="low"))
    assert result.runtimes is not None and fast.runtime == result.runtimes.chosen.runtime
    with torch.no_grad():
        assert_same(module, fast, x)


def test_kernels_of_its_own_compute_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    level = Standing(1.0, 1.0, 1.0, 9)
    faster = RaceResult((Standing(1.3, 1.29, 1.31, 9),), 1, Standing(1.3, 1.29, 1.31, 9), level)
    monkeypatch.setattr(kernel_library, "race", lambda *_: faster)
    norm = nn.Sequential(nn.LayerNorm(256), nn.GELU(), nn.LayerNorm(256)).eval()
    x = torch.randn(64, 256)
    options = Options.of(effort="low", fuse=True)
    fast, result = optimize_module(norm, (x,), options=options)
    assert result.library is not None and result.library.is_taken
    registered: list[Path] = []
    register = sessions.register
    monkeypatch.setattr(
        sessions,
        "register",
        lambda options, path: registered.append(path) or register(options, path),
    )
    again, _ = optimize_module(norm, (x,), options=options)
    assert registered == [again._artefact.path]
    compiled = torch.compile(
        norm, backend=partial(backend, options={"effort": "low", "fuse": True})
    )
    with torch.no_grad():
        for computed in (fast, again, compiled):
            assert_same(norm, computed, x * 3)
    assert len(set(registered)) == 2
    saved = fast.save(tmp_path / "saved.onnx")
    (y,) = relational_tensat.session(saved).run(None, {"input": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), norm(x))
    made(nn.GELU().eval(), x).save(saved)  # and its kernels are gone
    (y,) = relational_tensat.session(saved).run(None, {"input": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), nn.functional.gelu(x))
