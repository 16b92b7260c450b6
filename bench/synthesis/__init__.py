"""Synthesis: rules that nobody wrote, found by values and kept as tables.

In flow order: ``vocabulary``, of which operators; ``windows`` of models; ``batches`` of values with their
fingerprints; ``enumeration``, terms as rows; ``candidates`` by GROUP BY; ``two_sources``; ``conditions`` by
examples; ``judging``, with what verifies; ``funnel``, all of it in one file; ``found_report``, the texts.
``rule_search`` is the command. The others measure it: TASO's rules found again, rules left out, planted
false ones, and what found rules are worth to exports.
"""
