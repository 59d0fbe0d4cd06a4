"""The commands, a module per topic; :mod:`ltr_features.cli` puts them together.

Slow imports are inside the commands, so that ``--help`` and small commands start at once.
"""
