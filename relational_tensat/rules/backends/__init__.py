"""What graphs run on in the end: the kernels of a runtime, as operators, rules and costs.

A runtime fuses what it is given before it runs it. A backend says what becomes of a graph there: each of
its kernels is an operator whose meaning is that of the operators it does at once (``fused_kernel``), and
its rules lead from these to the kernel, so that extraction chooses among what will run. What is written is
again the operators that the runtime fuses.
"""
