"""Karat tells people what an encoder or a predictor is worth."""
