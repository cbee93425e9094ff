"""Run the command as `python -m encounters_client`."""

import sys

from encounters_client.cli import main

sys.exit(main())
