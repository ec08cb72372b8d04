"""Training: settings, the trainer, checkpoints, averaged weights."""
