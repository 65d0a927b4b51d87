"""Execution: from a plan to finished jobs."""
