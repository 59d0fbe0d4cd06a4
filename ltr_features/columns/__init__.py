"""Families of feature columns over (query, document) pairs."""
