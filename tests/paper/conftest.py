"""Programs of JAX are compiled without the passes that only make them fast."""

from quick_jax import compiled_quickly

__all__ = ["compiled_quickly"]
