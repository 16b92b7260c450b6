"""C from μGraphs without products: chains of functions and reductions, which a CPU does in one sweep."""
