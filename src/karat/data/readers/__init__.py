"""Readers: from files to datasets."""
