"""`python -m bardo` is the command line."""

import sys

from bardo.surfaces.cli import main

if __name__ == "__main__":
    sys.exit(main())
