"""Where the steps of islands are taken, and whole generations on accelerators."""
