"""AWS's Runtime Interface Emulator and other servers, as children that are ended whole."""
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.append(str(TOP / "tests/services"))

from ports import free_port  # noqa: E402

PATIENCE_S = 600
MACHINE = {"aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def sam():
    """The folder of SAM's virtual environment."""
    return pathlib.Path(run(HERE / "install.sh", stdout=subprocess.PIPE, text=True).stdout.strip())


def wait_for(port, process, log):
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE_S:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    raise AssertionError(f"nothing listens: {log.read_text()}")


class Child:
    """A session of its own, so that what it starts ends with it."""

    def __init__(self, command, environment, log):
        with log.open("w") as out:
            self.process = subprocess.Popen([str(part) for part in command], env=environment, stdout=out, stderr=out,
                                            start_new_session=True)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def invoke(work, command, environment, events):
    """Runs `command` as bootstrap under the emulator and hands it the events one after another: the answers, and what bootstrap
    printed, apart from what the emulator prints."""
    output, enter, log = work / "output", work / "enter", work / "rie.log"
    enter.write_text(f"#!/bin/sh\nexec {' '.join(map(str, command))} >{output} 2>&1\n")
    enter.chmod(0o755)
    port, api = free_port(), free_port()
    rie = next(sam().glob(f"lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-{MACHINE}"))
    addresses = ["--runtime-interface-emulator-address", f"127.0.0.1:{port}", "--runtime-api-address", f"127.0.0.1:{api}"]
    answers = []
    place = {} if any("chroot" in str(part) for part in command) else {"TMPDIR": str(work)}
    with Child([rie, *addresses, enter], {"PATH": os.environ["PATH"], **place, **environment}, log) as process:
        wait_for(port, process, log)
        for event in events:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            connection.request("POST", "/2015-03-31/functions/function/invocations", event)
            answers.append(connection.getresponse().read())
            connection.close()
    return answers, output.read_text() if output.exists() else log.read_text()


def ask(connection, method, path):
    """One request to moto's S3, which wants to see an Authorization and does not look into it."""
    scope = "AKIASLUICETESTS00000/20260101/us-east-1/s3/aws4_request"
    connection.request(method, path, headers={"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, f"{method} {path}: {answer.status}"
    return body
