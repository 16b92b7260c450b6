-- Why a run wrote the original although a cheaper graph was extracted: it was timed whole after that.
INSERT OR REPLACE INTO meta VALUES ('kept_original', $why)
