-- Why a run wrote the original although a cheaper graph was extracted: that was slower whole, or rejected.
INSERT OR REPLACE INTO meta VALUES ('kept_original', $why)
