-- Where the time went: by phase and statement, the longest first.
SELECT phase, statement, runs, seconds FROM time_spent ORDER BY seconds DESC
