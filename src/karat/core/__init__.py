"""Core: datasets, tasks, predictions, embeddings and the registries."""
