"""What a framework of the AutoML Benchmark calls in its own process and in its environment."""
