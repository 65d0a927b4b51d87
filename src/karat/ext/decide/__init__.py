"""Decisions: races, gates, the same encoder, the cheapest model, smaller suites, and power."""
