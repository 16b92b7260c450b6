"""``python -m relational_tensat`` is the command line."""

from __future__ import annotations

import sys

from relational_tensat.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
