"""From text collections to feature columns of LETOR rows."""
