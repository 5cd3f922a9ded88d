"""`python -m raceway.cli`."""

import sys

from raceway.cli import main

sys.exit(main())
