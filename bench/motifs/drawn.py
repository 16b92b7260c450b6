"""The motifs, and models of several of them, one after the other and beside each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.motifs.images import gathers, images, loops
from bench.motifs.qdq_chains import quantized_chain
from bench.motifs.sequences import attention, integers, masks, norms, perceptron, reductions
from bench.motifs.sketch import Sketch, Value

MOTIFS: dict[str, Callable[[Sketch], Value]] = {
    "attention": attention,
    "gathers": gathers,
    "images": images,
    "integers": integers,
    "loops": loops,
    "masks": masks,
    "norms": norms,
    "perceptron": perceptron,
    "quantized": quantized_chain,
    "reductions": reductions,
}


def drawn_sketch(seed: int, index: int) -> tuple[Sketch, list[str]]:
    """Draw a model of one to three motifs, the same for a seed and an index, and their names."""
    draw = np.random.default_rng([seed, index])
    sketch = Sketch(draw, f"g{index}_")
    names = [str(name) for name in draw.choice(list(MOTIFS), int(draw.integers(1, 4)))]
    for name in names:
        result = MOTIFS[name](sketch)
        if np.dtype(result.dtype).kind == "f" and result.dtype is np.float32:
            sketch.pool.append(_joined(sketch, result))
        else:
            sketch.outputs.append(result)
    return sketch, names


def _joined(sketch: Sketch, value: Value) -> Value:
    """Return a value behind what exporters and graph surgery leave between blocks."""
    kind = sketch.draw.integers(8)
    shape = value.shape
    if kind == 0:
        return sketch.op("Identity", [value], shape)
    if kind == 1:
        factor = sketch.constant(float(sketch.draw.uniform(0.5, 2.0)))
        return sketch.op("Mul", [value, factor], shape)
    if kind == 2 and len(shape) > 1:
        axes = [int(axis) for axis in sketch.draw.permutation(len(shape))]
        turned = sketch.op("Transpose", [value], [shape[axis] for axis in axes], perm=axes)
        back = [axes.index(axis) for axis in range(len(shape))]
        return sketch.op("Transpose", [turned], shape, perm=back)
    if kind == 3:
        return sketch.op("Relu", [sketch.op("Relu", [value], shape)], shape)
    if kind == 4:
        twin = sketch.op("Tanh", [value], shape)
        nothing = sketch.op("Sub", [twin, sketch.op("Tanh", [value], shape)], shape)
        return sketch.op("Add", [value, nothing], shape)  # alone, its zeros would prove nothing
    if kind == 5:
        sketch.outputs.append(value)
        return sketch.op("Neg", [sketch.op("Neg", [value], shape)], shape)
    if kind == 6:
        flat = sketch.op("Reshape", [value, sketch.ints(-1)], [int(np.prod(shape))])
        return sketch.op("Reshape", [flat, sketch.ints(*shape)], shape)
    return value
