"""Readers of vector files, one file per format; ``vector_formats`` lists them.

A reader is a function of the path that returns the names and a matrix with one row per name, as
those that users register with ``karat.vector_format``.
"""
