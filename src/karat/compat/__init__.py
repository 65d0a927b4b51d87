"""Drop-ins: the public interfaces of other benchmarks, on Karat's own data, probes and metrics."""
