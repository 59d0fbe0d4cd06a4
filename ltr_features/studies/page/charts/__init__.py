"""Charts of a page, a file for each kind."""
