"""Heads: small models that turn vectors into answers; scikit-learn estimators made by name."""
