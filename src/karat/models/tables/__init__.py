"""Encoders of table rows, one file per encoder; ``typed_columns`` has what they share.

``hashed_table`` is the shortest example: a class with ``_columns`` that says how words are encoded.
"""
