"""Why a rule did not change a graph: how far its pattern got, and which check rejected it."""
