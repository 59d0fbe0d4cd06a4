"""Readers that turn files into a :class:`ltr_features.collection.Collection`."""
