"""Is the arithmetic of models exact? Random graphs against brute force: ``tests/support/elimination.py``.

python -m benchmarks.elimination [NUMBER OF GRAPHS]    # 10,000 take some minutes
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.elimination import differences

graphs = int((*sys.argv[1:], "10000")[0])
different = [(case, fault) for case in range(graphs) for fault in differences(case)]
print(*different, f"{graphs:,} random graphs, {len(different)} differences from brute force", sep="\n")
sys.exit(bool(different))
