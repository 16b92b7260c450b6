"""Running graphs on NVIDIA GPUs: kernels, a memory plan, an executor.

Up to the driver everything is plain data and runs anywhere. ``lowering`` turns operators into calls of
kernels, ``plan`` places every value of a graph in memory and runs the calls through any ``KernelLibrary``.
The library of real kernels is ``relational_tensat.gpu.cuda``, which needs the extra ``[gpu]`` and a driver;
the tests have one in NumPy.
"""
