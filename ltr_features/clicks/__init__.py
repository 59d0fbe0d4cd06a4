"""Judgements from clicks: click logs, click models, and unbiased labels and weights."""
