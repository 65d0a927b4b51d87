"""Text encoders behind an HTTP endpoint, and the account of what a run spends on them."""
