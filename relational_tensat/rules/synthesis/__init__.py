"""Synthesis: rules that nobody wrote, found by values and kept as tables.

In flow order: ``vocabulary``, of which operators; ``windows`` of models; ``batches`` of values with their
fingerprints; ``enumeration``, terms as rows; ``candidates`` by GROUP BY; ``conditions`` by examples;
``judging``, with what verifies; ``found_rules``, the text; ``funnel``, all of it in one file.
"""
