"""``python -m karat.compat.amlb``, which is in ``karat.ext.compat.amlb``."""

import gc

if __name__ == "__main__":
    gc.disable()  # imports leave no cycles; the search for them takes a tenth of their time

from karat.ext.compat.amlb.__main__ import amlb, main, parser  # noqa: E402, F401

if __name__ == "__main__":
    main()
