"""Pages of runs: made by one command, opened in a browser, measured and photographed."""
