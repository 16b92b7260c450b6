"""The transformer blocks under inputs/, exported from PyTorch."""
