"""Random models of whole motifs, as exporters write them: optimized, and compared with themselves."""
