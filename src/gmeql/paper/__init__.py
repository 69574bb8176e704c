"""Methods "paper" and "released": Algorithm 1 of the paper, with the relaxed network in JAX."""
