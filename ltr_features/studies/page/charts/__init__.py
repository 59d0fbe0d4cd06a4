"""Charts of a page."""
