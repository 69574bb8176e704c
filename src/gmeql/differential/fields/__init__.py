"""Laws of fields: partial differential equations read off gridded data."""
