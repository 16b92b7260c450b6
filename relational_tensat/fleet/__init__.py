"""Many models: a folder of them optimized by processes, with one ledger that can be asked."""

from __future__ import annotations

from relational_tensat.fleet.fleet import Beside, fleet
from relational_tensat.fleet.ledger import Ledger
from relational_tensat.fleet.task import FleetRow

__all__ = ["Beside", "FleetRow", "Ledger", "fleet"]
