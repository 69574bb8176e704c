"""The front while it grows, and the plain sums that are judged beside it."""
