"""The command ``dpsyn`` without its imports, which take longer than most of what it is told: a process that has
imported everything and never touched a database forks once for each command line that a small program sends it.

The program sends its arguments, folder, environment and its three streams; the child answers with the exit code.
"""

import json
import os
import signal
import socket
import sys
import traceback

PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    told = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(told).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(told)
    sys.exit(int(server.recv(8) or b"1"))
"""


def serve(address):
    """Run command lines until standard input ends."""
    import dpsyn_sql.cli.main
    import dpsyn_sql.discovery
    import dpsyn_sql.evaluation
    import dpsyn_sql.front.load
    import dpsyn_sql.front.plan
    import dpsyn_sql.front.release
    import dpsyn_sql.schedule  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(16)
    print("ready", flush=True)
    if os.fork() == 0:
        while True:
            asked, _ = listening.accept()
            if os.fork() == 0:
                carried_out(asked)
            asked.close()
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


def carried_out(asked):
    """Be the command: with the caller's streams, folder and environment."""
    size, streams, _, _ = socket.recv_fds(asked, 4, 3)
    told = b""
    while len(told) < int.from_bytes(size, "big"):
        told += asked.recv(65536)
    arguments, folder, environment = json.loads(told)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["dpsyn", *arguments]
    code = 1
    try:
        from dpsyn_sql.cli.start import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - the caller reads it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        asked.sendall(str(code).encode())
        os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
