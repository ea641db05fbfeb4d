#!/usr/bin/env python3
"""The end of an environment: SLUICE_SHUTDOWN=1 makes SIGTERM come, and handlers are closed. The extension that asks for it keeps
asking, whatever it is answered, and whatever a handler does to its connection."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = ["tests/package", "tests/cli", "tests/runtime"]
import check_bootstrap
import emulator
from check_bootstrap import Api, Bootstrap, event
from harness import BUILD, check, finish, work_folder

work = work_folder()
told = work / "told"
PATIENCE_S = 600


class Extensions(Api):
    """The Extensions API beside the Runtime API: `registers` and `asks` say how it answers; all is noted in `seen`."""
    registers, asks = (200, b'{"functionName":"f"}', True), []

    def do_POST(self):
        if not self.path.startswith("/2020-01-01/"):
            return super().do_POST()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.put(("REGISTER", self.path, body, self.headers["Lambda-Extension-Name"]))
        answer = self.server.registers
        if answer is None:
            self.server.never.wait()
            return None
        code, body, has_id = answer
        return self.reply(code, body, [("lambda-extension-identifier", "id-1")] if has_id else [])

    def do_GET(self):
        if not self.path.startswith("/2020-01-01/"):
            return super().do_GET()
        self.server.seen.put(("ASK", self.path, None, self.headers["Lambda-Extension-Identifier"]))
        answer = self.server.asks.pop(0) if self.server.asks else None
        if answer is None:
            self.server.never.wait()
        elif answer == 0:
            self.close_connection = True
        else:
            self.reply(answer, b'{"eventType":"INVOKE"}')
        return None


class Function(Bootstrap):
    """`asks`: the answers to the extension's next; what follows waits for ever."""

    def __init__(self, registers=(200, b"{}", True), asks=(), what="none", config=None, **env):
        self.made, plain = None, check_bootstrap.ThreadingHTTPServer

        def make(address, handler):
            server = plain(address, Extensions)
            server.registers, server.asks, server.never = registers, list(asks), threading.Event()
            server.handle_error = lambda *a: None
            return server
        check_bootstrap.ThreadingHTTPServer = make
        try:
            told.unlink(missing_ok=True)
            routes = [{"name": "c", "handler": "closes", "what": what, "told": str(told), "on_failure": "report"}]
            super().__init__(config or {"report_batch_item_failures": True, "routes": routes},
                             **{"SLUICE_HANDLER_PATH": str(work), "SLUICE_SHUTDOWN": "1", **env})
        finally:
            check_bootstrap.ThreadingHTTPServer = plain

    def until(self, kind, n=1):
        """All that was seen until the n-th of that kind."""
        seen = []
        while n:
            seen.append(self.api.seen.get(timeout=PATIENCE_S))
            n -= seen[-1][0] == kind
        return seen

    def started(self, workers=1):
        """All that was seen until the extension waits and so many workers do: on connections of their own, so in any order."""
        seen = []
        while kinds(seen).count("GET") < workers or "ASK" not in kinds(seen):
            seen.append(self.api.seen.get(timeout=PATIENCE_S))
        return seen

    def stop(self):
        self.process.terminate()
        return self.wait()


def kinds(seen):
    return [s[0] for s in seen]


def build():
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{BUILD}/include", "-o", work / "closes.so",
                    "tests/runtime/plugins/closes.c"], check=True)


def is_told_of_the_end():
    f = Function(AWS_LAMBDA_LOG_GROUP_NAME="g", SLUICE_METRICS="600")
    seen = f.started()
    check("registered first, as one that wants no events", seen[0][0] == "REGISTER" and seen[0][1] == "/2020-01-01/extension/register" and
          json.loads(seen[0][2]) == {"events": []} and seen[0][3], seen)
    asked = next(s for s in seen if s[0] == "ASK")
    check("and waits, as the runtime does", sorted(kinds(seen)) == ["ASK", "GET", "REGISTER"] and asked[1].endswith("/event/next") and asked[3] == "id-1", seen)
    f.send(event(3))
    f.until("GET")
    status, out, err = f.stop()
    check("SIGTERM: close() runs, its line goes to standard output", status == 0 and told.read_text().count("closed") == 1 and out == "a plugin's line\n", (status, out, err))
    check("and the metrics that waited are written", err.count('"_aws"') == 2 and '"Records":3' in err, err)
    f = Function(SLUICE_SHUTDOWN="0")
    check("off: nothing is registered", kinds(f.until("GET")) == ["GET"])
    f.stop()


def asks_again():
    for answers in ([403], [500, 500, 500], [200, 200], [0], [0, 403, 200, 500]):
        f = Function(asks=answers)
        f.until("ASK", len(answers) + 1)
        f.send(event(1))
        f.until("POST")
        status, _, err = f.stop()
        check(f"asked again after {answers}; said once", status == 0 and err.count("ExtensionLost") == 1 and "WARN" in err, err)


def goes_on_without():
    for registers in ((403, b'{"errorType":"no"}', False), (404, b"", False), (500, b"x", True), (200, b"{}", False), None):
        f = Function(registers=registers)
        f.send(event(1))
        f.until("POST")
        _, _, err = f.stop()
        check(f"{registers}: one clear line, and it works", err.count("WARN") == 1 and "SLUICE_SHUTDOWN" in err and err.count("\n") == 1, err)


def workers():
    f = Function(AWS_LAMBDA_MAX_CONCURRENCY="3")
    seen = f.started(3)
    check("workers: one extension for all", sorted(kinds(seen)) == ["ASK", "GET", "GET", "GET", "REGISTER"], seen)
    for _ in range(6):
        f.send(event(1))
    asked = kinds(f.until("POST", 6)).count("GET")
    f.until("GET", 6 - asked)
    children = pathlib.Path(f"/proc/{f.process.pid}/task/{f.process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    f.until("GET", 1)
    status, _, err = f.stop()
    check("workers: SIGTERM closes the handlers of each", status == 0 and told.read_text().count("closed") == 3 and "ExtensionLost" not in err, (told.read_text(), err))
    f = Function(asks=[0, 500], AWS_LAMBDA_MAX_CONCURRENCY="2")
    f.until("ASK", 3)
    f.stop()
    check("workers: the parent asks again", True)


def closed_descriptors():
    """Whichever of the process's descriptors a handler closes: the event is answered, in time, and to Lambda; the next process works."""
    f = Function()
    f.send(event(1))
    f.until("GET", 2)
    numbers = [n for n in sorted(map(int, os.listdir(f"/proc/{f.process.pid}/fd"))) if n > 2]
    f.stop()
    check("there are some", len(numbers) >= 5, numbers)
    outcomes = {}
    for what in ["sockets", "all", *map(str, numbers)]:
        with tempfile.TemporaryDirectory() as folder:
            f = Function(what=what, TMPDIR=folder)
            began = time.monotonic()
            f.send(event(1))
            path, body = f.until("POST")[-1][1:3]
            took = time.monotonic() - began
            outcomes[what] = json.loads(body).get("errorType", "done")
            check(f"{what}: answered, at once", path.endswith("/response" if outcomes[what] == "done" else "/error") and took < 20, (path, body, took))
            if outcomes[what] == "done":
                f.send(event(1))
                check(f"{what}: and the next event", f.until("POST")[-1][2])
                f.process.kill()
            else:
                f.process.wait(timeout=PATIENCE_S)
            f.wait()
    check("what is ours is missed", outcomes["all"] == outcomes["sockets"] == "Function.HandlerClosedDescriptors" and
          sum(o == "Function.HandlerClosedDescriptors" for o in outcomes.values()) > len(numbers), outcomes)


def under_the_emulator():
    """AWS's own server: it knows the extension, and says SIGTERM before it ends the runtime; without the extension it does not."""
    rie = next(emulator.sam().glob(f"lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-{emulator.MACHINE}"))
    config = work / "sluice.json"
    config.write_text(json.dumps({"report_batch_item_failures": True, "routes": [{"name": "c", "handler": "closes", "told": str(told), "on_failure": "report"}]}))
    for on in ("1", "0"):
        told.unlink(missing_ok=True)
        port, api, log = emulator.free_port(), emulator.free_port(), work / "rie.log"
        env = {"PATH": os.environ["PATH"], "TMPDIR": str(work), "SLUICE_CONFIG": str(config), "SLUICE_HANDLER_PATH": str(work), "SLUICE_SHUTDOWN": on, "AWS_LAMBDA_FUNCTION_TIMEOUT": "60"}
        with emulator.Child([rie, "--runtime-interface-emulator-address", f"127.0.0.1:{port}", "--runtime-api-address", f"127.0.0.1:{api}", f"{BUILD}/bootstrap"],
                            env, log) as process:
            emulator.wait_for(port, process, log)
            for _ in range(3):
                connection = emulator.http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
                connection.request("POST", "/2015-03-31/functions/function/invocations", json.dumps(event(2)))
                answer = json.loads(connection.getresponse().read())
                check(f"the emulator, {on}: invocations are answered", answer == {"batchItemFailures": []}, (answer, log.read_text()))
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=PATIENCE_S)
        closed = told.exists() and told.read_text().count("closed")
        check(f"the emulator, {on}: close() ran only with the extension", bool(closed) == (on == "1"), log.read_text())


if __name__ == "__main__":
    build()
    for test in (is_told_of_the_end, asks_again, goes_on_without, workers, closed_descriptors, under_the_emulator):
        began = time.monotonic()
        test()
        if os.environ.get("TIMES"):
            print(test.__name__, round(time.monotonic() - began, 2))
    finish()
