"""``python -m temporalwiki``, which is also what ``accelerate launch -m temporalwiki`` starts."""

import sys

from temporalwiki.commands import main

sys.exit(main())
