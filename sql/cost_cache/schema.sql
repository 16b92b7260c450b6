-- The cost cache: one measured configuration of an operator on one device per row; see cost/tables/README.md.
CREATE TABLE measured_cost (
    configuration VARCHAR NOT NULL,  -- canonical JSON: op, attrs, inputs, layout
    kind VARCHAR NOT NULL,           -- cpu or cuda
    device VARCHAR NOT NULL,
    driver VARCHAR NOT NULL,
    libraries VARCHAR NOT NULL,      -- canonical JSON: versions by name
    protocol INTEGER NOT NULL,
    median_us DOUBLE, p10_us DOUBLE, p90_us DOUBLE, samples INTEGER,  -- NULL where it cannot be measured
    reason VARCHAR,                  -- why it cannot be measured, else NULL
    date VARCHAR NOT NULL,           -- UTC, ISO 8601
    PRIMARY KEY (configuration, kind, device, driver, libraries, protocol)
)
