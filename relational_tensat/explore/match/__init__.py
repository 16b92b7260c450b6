"""E-matching: from the e-graph's rows to the applications of rules."""
