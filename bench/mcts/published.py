"""What the paper reports (Hartmann, He, Yoneki, PACT '24, Table 2): seconds of planning on an A100 machine.

Main extraction "our greedy", final extraction ILP. The final ILP is not counted; planning is truncated to
whole seconds, and sleeps for one in each decision.
"""

from __future__ import annotations

#: By model.
SECONDS = {
    "bert": 43.8, "inception_v3": 3.4, "mobilenet_v2": 387.6, "nasnet_a": 1114.4, "nasrnn": 114.6,
    "resnet50": 10.0, "resnext50": 101.4, "squeezenet": 337.0, "vgg19": 1.0,
    "transformer_transducer": 577.0, "vit_base": 61.0, "vit_large": 56.4, "vit_huge": 62.8,
}  # fmt: skip
