"""What the user knows before the search: units, outer forms, constraints."""
