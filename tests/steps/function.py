"""A Lambda function on this machine: real bootstraps behind a Runtime API each, killed at their time-out as Lambda does, and an
invoke endpoint as SDKs call it. Faults can be ordered."""
import http.client
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
START_S = 600
LONGEST_S = 900.0  # what Lambda allows: no turn ends early because a machine is slow


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """Processes are killed with requests on their way."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, address)


class RuntimeApi(BaseHTTPRequestHandler):
    """Of one sandbox: one event at a time."""
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def log_message(self, *_):
        pass

    def reply(self, code, body=b"", headers=()):
        self.send_response(code)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:  # killed meanwhile
            self.close_connection = True

    def do_GET(self):
        event = self.server.events.get()
        if event is None:
            return self.reply(500)
        number, payload, timeout_s = event
        deadline_s = time.time() + timeout_s  # the process's start is not part of the first invocation
        self.server.began.put(deadline_s)
        self.reply(200, payload, [("Lambda-Runtime-Aws-Request-Id", f"00000000-0000-4000-8000-{number:012d}"),
                                  ("Lambda-Runtime-Deadline-Ms", str(int(deadline_s * 1000))),
                                  ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:seed")])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(202, b'{"status":"OK"}\n')
        kind = self.path.rpartition("/")[2]
        self.server.answers.put((kind, body))


class Sandbox:
    """One process. A folder for temporary files outlives it, as /tmp outlives a process that Lambda replaces."""

    def __init__(self, environment, log, folder):
        self.api = Server(("127.0.0.1", 0), RuntimeApi)
        self.api.events, self.api.began, self.api.answers = queue.Queue(), queue.Queue(), queue.Queue()
        threading.Thread(target=self.api.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.folder = folder or tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [f"{BUILD}/bootstrap"], cwd=self.folder.name, stdout=log, stderr=log,
            env={**environment, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.api.server_port}", "TMPDIR": self.folder.name})

    def ask(self, number, payload, timeout_s, kill_after_s=None):
        """("response", body), ("error", body), ("timeout", None), ("exit", status), or ("gone", status) if it never took the event;
        after the last three the process is no more."""
        self.api.events.put((number, payload, timeout_s))
        end, has_begun = time.time() + START_S, False
        kill_at = None
        while True:
            try:
                return self.api.answers.get(timeout=0.005)
            except queue.Empty:
                pass
            if not self.api.began.empty():
                end, has_begun = self.api.began.get(), True
                kill_at = time.time() + kill_after_s if kill_after_s is not None else None
            if self.process.poll() is not None:
                try:
                    return self.api.answers.get(timeout=1 if has_begun else 0.005)  # it may have answered, and ended then
                except queue.Empty:
                    return "exit" if has_begun else "gone", self.process.returncode
            if kill_at and time.time() >= kill_at:
                self.process.kill()
                kill_at = None
            if time.time() >= end:
                self.process.kill()
                return "timeout", None

    def close(self, orderly=False):
        """Returns how it ended. In an orderly end a sanitizer can say what was not freed."""
        if orderly:
            self.process.terminate()
            try:
                self.process.wait(timeout=START_S)
            except subprocess.TimeoutExpired:
                pass
        self.process.kill()
        status = self.process.wait()
        self.api.events.put(None)
        self.api.shutdown()
        self.api.server_close()
        return status


class Function:
    """`invoke` as Lambda's: (status, function error or None, body). `fault(number, payload)` may return "throttle", "broken" (a
    service error), ("kill", seconds) or None; numbers count invocations from 1."""

    def __init__(self, environment, timeout_s=LONGEST_S, fault=None, log=None):
        base = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SLUICE_", "LAMBDA_"))}
        self.environment = {**base, **environment, "AWS_LAMBDA_FUNCTION_NAME": "seed"}
        self.timeout_s, self.fault = timeout_s, fault or (lambda number, payload: None)
        self.log = open(log, "ab") if log else subprocess.DEVNULL
        self.lock, self.idle, self.folders, self.count = threading.Lock(), [], [], 0
        self.endings = []

    def take(self):
        with self.lock:
            self.count += 1
            if self.idle:
                return self.count, self.idle.pop()
            number = self.count
            folder = self.folders.pop() if self.folders else None
        return number, Sandbox(self.environment, self.log, folder)

    def give_back(self, sandbox, kind):
        if kind in ("response", "error"):
            with self.lock:
                self.idle.append(sandbox)
        else:
            sandbox.close()
            with self.lock:
                self.folders.append(sandbox.folder)

    def invoke(self, payload):
        number, sandbox = self.take()
        fault = self.fault(number, json.loads(payload))
        if fault in ("throttle", "broken"):
            self.give_back(sandbox, "response")
            return (429, "TooManyRequestsException", b'{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded","message":"Rate Exceeded."}') \
                if fault == "throttle" else (500, "ServiceException", b'{"message":"An error occurred."}')
        kind, body = sandbox.ask(number, payload, self.timeout_s, fault[1] if fault else None)
        if kind == "gone":  # it ended after the invocation before: Lambda starts another process
            sandbox.close()
            sandbox = Sandbox(self.environment, self.log, sandbox.folder)
            kind, body = sandbox.ask(number, payload, self.timeout_s)
        self.give_back(sandbox, kind)
        with self.lock:
            self.endings.append(kind)
        if kind == "response":
            return 200, None, body
        if kind == "timeout":
            body = {"errorType": "Sandbox.Timedout", "errorMessage": f"Task timed out after {self.timeout_s:.2f} seconds"}
        elif kind in ("exit", "gone"):
            body = {"errorType": "Runtime.ExitError", "errorMessage": f"Error: Runtime exited with {body}"}
        return 200, "Unhandled", body if isinstance(body, bytes) else json.dumps(body).encode()

    def close(self):
        """How the processes ended that nobody had killed: 0 each."""
        ends = [sandbox.close(orderly=True) for sandbox in self.idle]
        for folder in self.folders + [sandbox.folder for sandbox in self.idle]:
            folder.cleanup()
        return ends


class Front(BaseHTTPRequestHandler):
    """Lambda's Invoke, for any function's name; every other request goes on to the server behind, unless `refuse` answers it."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/invocations"):
            status, error, answer = self.server.function.invoke(body)
            headers = {"Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST", "x-amzn-RequestId": str(uuid.uuid4())}
            if error:
                headers["X-Amz-Function-Error" if status == 200 else "x-amzn-ErrorType"] = error
        elif refusal := self.server.refuse(self):
            (status, answer), headers = refusal, {"Content-Type": "application/x-amz-json-1.0"}
        else:
            connection = http.client.HTTPConnection(self.server.behind, timeout=600)
            connection.request(self.command, self.path, body, dict(self.headers))
            reply = connection.getresponse()
            status, answer = reply.status, reply.read()
            headers = {name: value for name, value in reply.getheaders()
                       if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server")}
            connection.close()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any


def serve_front():
    """An endpoint for SDKs: `.behind` is set before it is used (host:port), and `.function` if it is invoked. `.refuse(request)` may
    return a status and a body."""
    front = Server(("127.0.0.1", 0), Front)
    front.refuse = lambda request: None
    threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return front
