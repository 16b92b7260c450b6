"""The 13 models as they are."""
