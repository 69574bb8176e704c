"""Laws of one product of powers, alone or inside a function."""
