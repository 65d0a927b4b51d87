"""Probes turn vectors into answers: a trained head, similarity, analogy, links, nearest."""
