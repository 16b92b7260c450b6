"""Extraction while exploration runs: the cheapest graph so far, which is never lost."""

from relational_tensat.extract.anytime.extractor import AnytimeExtractor
from relational_tensat.extract.anytime.kept import ExtractionEntry

__all__ = ["AnytimeExtractor", "ExtractionEntry"]
