"""What every exploration writes when it ends, whatever its strategy."""

from __future__ import annotations

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.match.matching import Matcher


def write_ending(egraph: EGraph, matcher: Matcher, journal: Journal) -> None:
    """Write what is not written yet, in the caller's transaction: signatures, instances that unions name,
    iterations, the seconds of rules. A file's tables of instances go: nobody resumes from them.
    """
    database, seconds = egraph.database, matcher.rule_seconds
    egraph.catalogue.flush(database)
    matcher.log_instances()
    journal.write(database)
    database.insert("rule_time", {"rule": list(seconds), "seconds": list(seconds.values())})
    if database.is_file:
        matcher.instances.drop_tables()
