"""Query generators: other questions about the rows of a dataset.

A query generator is a function ``(data, rng, **parameters) -> Dataset``.
"""
