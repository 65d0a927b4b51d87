"""Analysis: tables of scores in, conclusions out."""
