"""The six rules that TENSAT adds in its code, written as its files write rules."""

from __future__ import annotations


def _merged(stride: int, act: int) -> str:
    conv = f"conv2d {stride} {stride} 0 {act} ?input_1"
    return f"({conv} ?input_2)=>({conv} (merge ?input_2 2))\n"


def _enlarged(act: int) -> str:
    conv = f"conv2d 1 1 0 {act} ?input_1"
    both = f"(split 1 ({conv} (concat 0 4 (enlarge ?input_2 ?input_3) ?input_3)))"
    return f"({conv} ?input_2)=>(split_0 {both})\n({conv} ?input_3)=>(split_1 {both})\n"


#: 120-123 in TENSAT's order: pairs of groups become one; strides 1 and 2, without and with relu.
MERGED = "".join(_merged(stride, act) for stride in (1, 2) for act in (0, 2))
#: 137 and 138: two convolutions of one operand, the smaller kernel amid zeros.
ENLARGED = "".join(_enlarged(act) for act in (0, 2))
