"""Whole steps of islands on an accelerator: draw, fit, keep, learn; the host only polishes.

The compiled sampler and the island's life once more, in CUDA C++ over `fitters/cuda`: a thread draws a candidate, a warp
fits it, a warp keeps an island's elites and learns from them. All islands of a stage step together, and nothing comes
back to the host before the stage ends or a formula is exact. What was tried is remembered there, for all islands
together, step by step.

Every candidate has random numbers of its own, and whatever happens side by side is put in an order that does not depend
on who was first: same seed, same result on the same kind of card. The draws differ from the processor's.

`source.py` puts the files together, `layout.py` says how their structures lie in memory, `stage.py` runs them,
`advance.py` shares the islands out.

Legend: `I` islands, `B` candidates of an island's step, `E` elites, `C` connections, `M` choices, `W` weights.
"""
