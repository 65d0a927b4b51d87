"""Probes turn vectors into answers: a trained head, a similarity, an analogy. Three in all."""
