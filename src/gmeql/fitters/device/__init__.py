"""The accelerator engine: the contract of `cpu.py` in JAX, thousands of programs side by side.

Every program of a batch takes the same step at the same time: node k of all tapes, then node k + 1, and so on
(`tape.py`). Levenberg-Marquardt then follows the compiled kernel step by step with one mask per candidate, so the
engines agree to rounding (`levenberg_marquardt.py`).

Shapes are padded to a few sizes (nodes, constants, candidates, rows, data sets; `batches.py`), so that the number of
compilations stays bounded whatever the batches look like. Candidates of one batch may be fitted to different data, so
all islands of a search advance together. With several devices each takes a share of every batch; a candidate's fit
depends on nothing but itself, so their number changes nothing. Runs on any JAX backend; on a CPU it is slower than
`cpu.py` and there for tests.

Legend: `B` candidates, `T` nodes, `P` free constants, `C` constants, `D` data sets (inputs, target, weights), `S` input
slots, `N` rows of a block.
"""
