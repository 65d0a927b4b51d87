"""Search: the user's own documents, search models, and queries made of tables."""
