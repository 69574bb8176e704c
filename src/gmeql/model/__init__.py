"""What a fit leaves behind: the Pareto front, intervals, plots, model files, and the fit that makes them."""
