"""The runtimes that graphs run on in the end: their kernels, as operators, rules and costs.

A runtime fuses what it is given before it runs it. A backend says how a runtime runs a graph: each of its
kernels is an operator whose meaning is that of the operators it does at once (``fused_kernel``). Its rules
lead from these to the kernel, so that extraction chooses among the kernels that will run. The written graph
has the operators again that the runtime fuses.
"""
