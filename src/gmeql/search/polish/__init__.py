"""Formulas without ballast: drop what the data do not need, refit, and round constants to what people recognise.

Raw solutions carry terms that cancel, dead terms and constants such as 1.9999999998. Every shorter formula that one
cut can make is refitted to the data, and kept when the description length falls: half the rows times the log of the
loss, plus what the constants and the nodes cost. On noise-free data the loss counts only down to rounding level; on
noisy data a constant must earn its keep, so a constant that the noise cannot tell from a short number becomes it.
"""
