"""Data sources: find or fetch the files of a data set, and read them into a Dataset."""
