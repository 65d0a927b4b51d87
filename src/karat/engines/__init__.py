"""Engines that run jobs on a cluster."""
