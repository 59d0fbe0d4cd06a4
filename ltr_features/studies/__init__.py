"""Experiments and their reports: measures, significance, hard queries, HTML."""
