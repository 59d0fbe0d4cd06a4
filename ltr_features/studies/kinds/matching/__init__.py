"""Experiments on matching models: pairs of words, texts, links and languages, in tables."""
