"""Method "fitted": islands of networks whose every candidate gets constants of its own."""
