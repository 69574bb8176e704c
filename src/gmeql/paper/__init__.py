"""Methods "paper" and "released": Algorithm 1 of the paper, with the relaxed network in JAX.

`two_stage/` is the algorithm (its first page is Algorithm 1, line by line), `concrete` and `relaxed` are the
distributions and the network it trains, `search` is the algorithm behind the interface of every method.
"""
