-- The results of races of whole graphs: a row for each graph that raced against an original on a device. Costs are corrected by them.
CREATE TABLE IF NOT EXISTS race_outcome (
    model VARCHAR NOT NULL,          -- what raced: its name, and hashes of both graphs
    before_us VARCHAR NOT NULL,      -- JSON: microseconds of the original by kind of kernel, by measured sums
    after_us VARCHAR NOT NULL,       -- the same of the other graph
    kind VARCHAR NOT NULL, device VARCHAR NOT NULL, driver VARCHAR NOT NULL, libraries VARCHAR NOT NULL,
    protocol INTEGER NOT NULL,
    speedup DOUBLE NOT NULL,         -- how many times as fast as the original
    error DOUBLE NOT NULL,           -- of it, as a fraction
    date VARCHAR NOT NULL,           -- UTC, ISO 8601
    PRIMARY KEY (model, before_us, after_us, kind, device, driver, libraries, protocol)
);
-- The way of racing: results of races of another version do not count. Caches of before have no such column.
ALTER TABLE race_outcome ADD COLUMN IF NOT EXISTS race_version INTEGER DEFAULT 1
