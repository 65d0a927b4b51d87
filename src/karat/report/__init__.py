"""Reports: what people see of runs. The terminal first."""
