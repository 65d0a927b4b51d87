"""``python -m karat`` is the command line."""

from karat.cli.app import main

if __name__ == "__main__":
    main()
