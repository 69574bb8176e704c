"""Benchmark problems, the definition of "solved", the paper's opponents and its evaluation."""
