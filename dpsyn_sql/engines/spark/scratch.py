"""Where tasks put files of their own. It travels to the workers by value: nothing else may be imported."""

from __future__ import annotations

import os


def local_folder() -> str | None:
    """A folder of Spark's own for this worker, None if there is none."""
    listed = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return next((folder for folder in listed if folder and os.access(folder, os.W_OK)), None)
