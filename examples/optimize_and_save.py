"""Make a model faster, look at the report, and save the result.

python examples/optimize_and_save.py
"""

from pathlib import Path

import onnx

from relational_tensat import Options, optimize

MODELS = Path(__file__).resolve().parent.parent / "bench" / "inputs"

# A path would do as well: optimize takes both. effort="low" models costs and times nothing.
model = onnx.load(MODELS / "encoder_block.onnx")
result = optimize(model, Options.of(runs_on="onnxruntime", effort="low"))

print(result.report())

# The result is an onnx.ModelProto that was compared with the original.
print("nodes before and after:", len(model.graph.node), len(result.model.graph.node))
print("saved to", result.save("faster.onnx"))
