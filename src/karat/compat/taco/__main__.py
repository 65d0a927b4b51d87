"""``python -m karat.compat.taco``, which is in ``karat.ext.compat.taco``."""

from karat.ext.compat.taco.__main__ import main  # noqa: F401

if __name__ == "__main__":
    main()
