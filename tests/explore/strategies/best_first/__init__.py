"""Best first."""
