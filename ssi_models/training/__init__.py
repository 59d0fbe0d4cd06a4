"""Training on preferences: from relevant pairs through batches and losses to gradient steps."""
