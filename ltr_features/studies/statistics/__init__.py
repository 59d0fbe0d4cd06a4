"""Statistics of per-query values; independent of kinds of studies and of the report page."""
