"""Tokens a second of decoders with a cache, beside other tools."""
