"""The kinds of studies, each with its stages, tables and page."""
