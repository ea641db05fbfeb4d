#!/usr/bin/env python3
"""Two tables that follow each other, in random worlds on DynamoDB Local: see two_way.py.

check_two_way.py [SEED | FIRST-LAST]: those worlds; without, some seconds of them, the first of which are always the same.
"""
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, "tests/cli")
from harness import WHOLE, kills  # noqa: E402
from servers import Servers  # noqa: E402

SECONDS = 35 if WHOLE else 15
AT_ONCE = 4


def serve():
    """Starts DynamoDB Local; it ends with this process."""
    kills()
    os.environ.update(Servers("dynamodb").env)


def worlds(seeds, programs, seconds=10**9, **how):
    """Runs some at once, as they mostly wait; returns how many there were."""
    import two_way
    end, lock, left, failures = time.monotonic() + seconds, threading.Lock(), iter(seeds), []
    done = []

    def work():
        while not failures and time.monotonic() < end:
            with lock:
                seed = next(left, None)
            if seed is None:
                return
            try:
                two_way.World(seed, programs, **how).run()
                done.append(seed)
            except BaseException as error:  # of a thread: told by the first
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return len(done)


def main():
    programs = [pathlib.Path(os.environ.get("BUILD", "build"), "sluice").resolve()]
    first, _, last = (sys.argv[1] if len(sys.argv) > 1 else "1-100000").partition("-")
    serve()
    done = worlds(range(int(first), int(last or first) + 1), programs, **({} if sys.argv[1:] else {"seconds": SECONDS}))
    print(f"{done} passed, 0 failed")


if __name__ == "__main__":
    main()
