"""Data sources: find or download the files of a dataset, and read them into a Dataset."""
