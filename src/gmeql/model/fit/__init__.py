"""One fit from start to end: parameters and rows checked, kernels ready, the search run and kept."""
