"""Going on from formulas that are nearly right: a place of theirs is asked what would have to stand there."""
