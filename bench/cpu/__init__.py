"""Costs measured on the processor: modelled against whole graphs."""
