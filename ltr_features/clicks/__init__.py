"""Clicks as judgements: logs in, click models, unbiased labels and weights out."""
