"""Charts of a page, one module for each kind."""
