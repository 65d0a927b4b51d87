"""Results: run folders, the tables in them, and what can be concluded from the tables."""
