"""Output of results: terminal, documents, HTML report and plots."""
