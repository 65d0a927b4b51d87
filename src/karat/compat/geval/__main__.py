"""``python -m karat.compat.geval``, which is in ``karat.ext.compat.geval``."""

from karat.ext.compat.geval.__main__ import main

if __name__ == "__main__":
    main()
