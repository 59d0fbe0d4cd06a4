"""The report page: tables, figures and text."""
