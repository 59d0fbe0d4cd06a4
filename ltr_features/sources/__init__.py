"""Readers that turn files into a :class:`ltr_features.text.collection.Collection`."""
