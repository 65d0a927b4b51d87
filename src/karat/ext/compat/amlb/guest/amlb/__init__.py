"""The modules of the AutoML Benchmark that its frameworks import, for a framework's own process.

They need numpy and pandas only where a framework uses data, so that a framework's own environment
can import them.
"""
