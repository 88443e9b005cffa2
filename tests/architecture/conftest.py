"""For tests about how the code is built and what it costs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode
