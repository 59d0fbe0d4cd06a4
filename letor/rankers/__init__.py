"""Learning-to-rank models over :class:`letor.dataset.RankingData`."""
