"""``python -m relational_tensat`` is the command line."""

from __future__ import annotations

from relational_tensat.cli.main import process

if __name__ == "__main__":
    process()
