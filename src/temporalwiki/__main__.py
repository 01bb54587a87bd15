"""Run the command as ``python -m temporalwiki`` or ``accelerate launch -m temporalwiki``."""

import sys

from temporalwiki.commands import main

sys.exit(main())
