"""`python -m steersman` is the `steersman` command."""

import sys

from steersman.cli import main

sys.exit(main())
