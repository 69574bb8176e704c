"""The accelerator engine: the contract of `cpu.py` in CUDA C++, compiled at run time, one warp a candidate.

A warp of 32 lanes keeps a candidate's program, constants and normal equations in shared memory and walks the rows, a few
a lane at a time; a whole Levenberg-Marquardt fit is one visit, with all the early ends of the compiled kernel
(`levenberg_marquardt.cuh`). Warps take the next candidate when they are done, so a batch may mix long and short fits and
data sets. Nothing is compiled for a shape: only one kernel for each size of programs (`source.py`).

The same source compiles as plain C++, lanes as a loop: that is how it is tested where there is no accelerator.

Legend: `B` candidates, `N` rows, `S` input slots, `T` nodes, `P` constants.
"""
