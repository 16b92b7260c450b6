-- The times of kernels in C that a run made for its model, or of parts of it with them and without: a row for each code, compiler with its flags, and device.
CREATE TABLE IF NOT EXISTS compiled_cost (
    code VARCHAR NOT NULL,           -- SHA-256 of the code, and of what it was compared with
    compiler VARCHAR NOT NULL,       -- its version and flags
    kind VARCHAR NOT NULL, device VARCHAR NOT NULL, driver VARCHAR NOT NULL, libraries VARCHAR NOT NULL,
    protocol INTEGER NOT NULL,
    median_us DOUBLE NOT NULL, p10_us DOUBLE NOT NULL, p90_us DOUBLE NOT NULL, samples INTEGER NOT NULL,
    date VARCHAR NOT NULL,           -- UTC, ISO 8601
    PRIMARY KEY (code, compiler, kind, device, driver, libraries, protocol)
)
