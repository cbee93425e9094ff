"""Lets `python -m app.cli` run the console script."""

import sys

from app.cli import main

sys.exit(main())
