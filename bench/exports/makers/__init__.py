"""Making the models, in an environment of its own: nothing here imports the optimizer."""
