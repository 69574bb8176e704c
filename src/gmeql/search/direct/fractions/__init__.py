"""Polynomials and their fractions, by linear algebra."""
