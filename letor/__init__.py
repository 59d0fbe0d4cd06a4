"""LETOR rows: files, folds, normalisation, measures and rankers."""
