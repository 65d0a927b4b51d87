"""The package below which the AutoML Benchmark's frameworks find ``frameworks.shared``."""
