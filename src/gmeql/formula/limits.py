"""How far arguments and exponents may go: the bounds that trees, printers, parsers and the compiled fitters share."""

from __future__ import annotations

ANGLE_LIMIT = 5e8
"""Largest argument of sine and cosine in a fit, of which a double still knows seven digits behind the point; beyond it the
candidate is not finite."""
EXPONENTIAL_LIMIT = 700.0
"""Largest argument of the exponential in a fit: exp(709.8) is past the largest double."""
PROTECTED_EXPONENTIAL_LIMIT = 80.0
"""Largest argument of the protected exponential: exp(88.7) is past the largest float32, in which networks train."""
PROTECTED_POWER_LIMITS = (1e-6, 1e6)
"""Magnitudes of a protected power's base; to the fifth power they are 1e±30, finite in float32 with their slopes."""
PROTECTED_EXPONENT_LIMIT = 5.0
"""Largest exponent of a protected power."""
WHOLE_EXPONENT_LIMIT = 64
"""Largest whole exponent that is raised to by multiplication, and largest half one that SymPy gets as a fraction."""
PLAIN_EXPONENT_LIMIT = 6
"""Largest exponent that is structure, as people write it, and not a constant; whole powers have names up to here."""
SIMPLIFIED_EXPONENT_LIMIT = 60.0
"""Largest exponent that algebra may make; beyond it a formula counts as overflowed."""
SIMPLIFIED_EXPONENTIAL_LIMIT = 300.0
"""Largest constant that algebra takes out of an exponential as a factor."""
NUMBER_LIMIT = 1e300
"""Largest number in formula text."""
NUMBER_EXPONENT_LIMIT = 1_000
"""Largest exponent between two numbers in formula text."""
LAW_EXPONENTS = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Exponents that columns have in power laws as people write them."""
