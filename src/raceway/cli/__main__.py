"""`python -m raceway.cli`."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # put there by -m: files in it are not to be imported
    del sys.path[0]

from raceway.cli import main

sys.exit(main())
