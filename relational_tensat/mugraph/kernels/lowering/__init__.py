"""From a block graph to statements: what is stored where, in which order, with which barriers."""
