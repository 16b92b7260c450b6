"""Focus: subgraphs grown one after the other, each from the cheapest graph of those before."""
