"""Results as text, in notebooks, and as Markdown, LaTeX, HTML, JSON and CSV."""
