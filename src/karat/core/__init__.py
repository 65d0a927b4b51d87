"""Core: datasets, tasks, predictions, embeddings and the registries. Imports nothing else of Karat but errors."""
