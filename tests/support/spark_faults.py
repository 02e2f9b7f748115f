"""Steps before a source that go wrong once: they stand in its lineage, so that the task that counts is run again.

They are functions of one partition's batches for ``mapInArrow``. Workers import nothing of this module: it is
pickled by value.
"""

import itertools
import sys

BROKEN_AT = 2
"""Rows of a partition go on before it breaks, so that half a part was handed over."""


def by_value():
    """Let the functions of this module travel to workers as they are."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def going_wrong_once(how, flag):
    """Hand batches on; in the first task that gets to its third row, fail as ``how`` says. ``flag``: a path."""

    def handed_on(batches):
        import os

        rows = 0
        for batch in batches:
            for place in range(0, batch.num_rows, 500):
                if rows >= BROKEN_AT and _first(flag):
                    how(os.getpid(), flag)
                part = batch.slice(place, 500)
                rows += part.num_rows
                yield part

    return handed_on


def in_each_pass(how, folder, task_of, passes=None):
    """In place of ``tasks.task_of``: in each pass over rows, codes or counts one task goes wrong after its first batch.

    Only in the first so many ``passes``, if they are given. What went wrong is a file of ``folder``, ``pass-0``, ...
    """
    numbers = itertools.count()

    def made(work):
        task, number = task_of(work), next(numbers)
        if passes is not None and number >= passes:
            return task
        step = after_a_batch(how, f"{folder}/pass-{number}")
        return lambda batches: task(step(batches))

    return made


def after_a_batch(how, flag):
    """Hand batches on; in the first task that asks for more after one of them, fail as ``how`` says."""

    def handed_on(batches):
        import os

        for batch in batches:
            yield batch
            if _first(flag):
                how(os.getpid(), flag)

    return handed_on


def raising(pid, flag):
    """A task that fails."""
    raise ValueError("the text of this error holds canary-of-a-task")


def killing_worker(pid, flag):
    """The Python process of the task dies."""
    import os
    import signal

    os.kill(pid, signal.SIGKILL)


def killing_executor(pid, flag):
    """The Java process above the Python process dies, with all its tasks and what they wrote."""
    import os
    import signal
    from pathlib import Path

    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)


def waiting(pid, flag):
    """The first attempt of the first part waits until speculation has begun a second one; else says it waited."""
    import time
    from pathlib import Path

    from pyspark import TaskContext

    for _ in range(1200):
        if Path(f"{flag}.second").exists():
            return
        time.sleep(0.05)
    Path(f"{flag}.in vain").touch()  # this failure starts a second attempt too
    raise TimeoutError(f"no second attempt beside {TaskContext.get().taskAttemptId()}")


def slow_once(flag):
    """Hand batches on; the first attempt of partition 0 waits for another attempt of it."""

    def handed_on(batches):
        from pathlib import Path

        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 0:
            if _first(flag):
                waiting(0, flag)
            else:
                Path(f"{flag}.second").touch()
        yield from batches

    return handed_on


def _first(flag):
    """Whether nobody came here before."""
    import os

    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
