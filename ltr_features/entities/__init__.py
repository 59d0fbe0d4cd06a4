"""Entities: linkers of text to Wikipedia articles, and the knowledge base made from a dump."""
