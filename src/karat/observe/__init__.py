"""Statistics of tasks and vectors that the checks read; scores do not depend on them."""
