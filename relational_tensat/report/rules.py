"""What ``rules show`` prints: a rule as it was written, and the SQL that finds its matches."""

from __future__ import annotations

from relational_tensat.explore.compile import CompiledRules, join_query, match_query
from relational_tensat.rules.model import Rule
