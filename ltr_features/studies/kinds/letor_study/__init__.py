"""Comparison of rankers on the folds of a LETOR data set."""
