-- Why a run wrote the original although a cheaper graph was extracted: both were timed end to end after that.
INSERT OR REPLACE INTO meta VALUES ('kept_original', $why)
