"""The commands, a module per topic; :mod:`ltr_features.cli` puts them together.

Imports that take time are inside the commands, so that ``--help`` and the small commands start at
once.
"""
