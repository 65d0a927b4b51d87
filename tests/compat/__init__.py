"""Tests of the compatible entry points; a package, so that they share what makes small files."""
