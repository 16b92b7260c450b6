-- Height labels of the original graph's classes, to fit those of what is copied; see relational_tensat/explore/strategies/blocks.
CREATE OR REPLACE TEMP TABLE label (id INTEGER, height INTEGER)
