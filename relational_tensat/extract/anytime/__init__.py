"""Extraction while exploration runs: the cheapest graph so far, which is never lost."""

from relational_tensat.extract.anytime.entry import ExtractionEntry
from relational_tensat.extract.anytime.extractor import AnytimeExtractor

__all__ = ["AnytimeExtractor", "ExtractionEntry"]
