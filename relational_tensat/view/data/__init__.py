"""The content of a page, as plain data; its drawing is in ``page``."""
