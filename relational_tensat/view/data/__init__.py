"""What a page shows, as plain data; its drawing is in ``page``."""
