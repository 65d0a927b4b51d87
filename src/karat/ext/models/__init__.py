"""Models of other libraries: foundation models, sentence encoders, graph libraries, AutoML."""
