"""What a search minimises: losses as least squares, and constants at the minimum of the loss itself."""
