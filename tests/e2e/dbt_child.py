"""Runs dbt commands one after the other in one process; writes their results as JSON to a file.

python dbt_child.py RESULTS '[["build"], ["show", "-s", "model"]]'
"""

import json
import sys

from dbt.cli.main import dbtRunner


def told(result):
    nodes = getattr(result.result, "results", None) or []
    return {
        "success": bool(result.success),
        "exception": str(result.exception or ""),
        "nodes": {node.node.name: [str(node.status), str(node.message or "")] for node in nodes},
    }


if __name__ == "__main__":
    runner, results = dbtRunner(), []
    for command in json.loads(sys.argv[2]):
        print("$ dbt", *command, flush=True)
        results.append(told(runner.invoke(command)))
    with open(sys.argv[1], "w") as file:  # noqa: PTH123 - works where only dbt is on the path
        json.dump(results, file)
