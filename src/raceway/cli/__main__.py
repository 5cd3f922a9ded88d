"""`python -m raceway.cli`."""

import os
import sys

# Put there by -m: files in the current folder are not to be imported. What raceway itself imports came before this; the
# `raceway` command, or python -P -m, never looks there.
try:
    here = os.getcwd()
except OSError:  # it has been deleted
    here = ""
if not sys.flags.safe_path and sys.path[:1] == [here]:
    del sys.path[0]

from raceway.cli import main

sys.exit(main())
