"""``python -m tests.golden`` writes the golden texts anew; look at the difference before you commit it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from texts import write_all

print(f"{write_all()} texts written")
