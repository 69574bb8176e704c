"""What a formula is likely to do on rows that were not seen, and what it takes to state it."""
