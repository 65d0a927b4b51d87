"""``python -m karat.compat.amlb``, which is in ``karat.ext.compat.amlb``."""

from karat.ext.compat.amlb.__main__ import amlb, main, parser  # noqa: F401

if __name__ == "__main__":
    main()
