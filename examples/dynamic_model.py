"""A model whose batch size is open stays open: only the costs are those of one size.

python examples/dynamic_model.py
"""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from relational_tensat import Options, optimize

# A product, a bias and a relu, with "batch" as the name of an open dimension.
random = np.random.default_rng(0)
weights = [
    numpy_helper.from_array(random.normal(size=size).astype(np.float32), name)
    for name, size in (("weight", (64, 64)), ("bias", (64,)))
]
nodes = [
    helper.make_node("MatMul", ["x", "weight"], ["product"]),
    helper.make_node("Add", ["product", "bias"], ["sum"]),
    helper.make_node("Relu", ["sum"], ["y"]),
]
x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 64]) for name in "xy")
graph = helper.make_graph(nodes, "layer", [x], [y], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

result = optimize(model, Options.of(runs_on="t4", dims={"batch": 32}))
print(result)
print(
    [node.op_type for node in model.graph.node], "->", [n.op_type for n in result.model.graph.node]
)

# The result takes any batch size, and computes the same.
for batch in (1, 7):
    values = {"x": random.normal(size=(batch, 64)).astype(np.float32)}
    before, after = (
        onnxruntime.InferenceSession(one.SerializeToString()).run(None, values)[0]
        for one in (model, result.model)
    )
    print("batch", batch, "equal:", np.allclose(before, after, rtol=1e-4, atol=1e-4))
