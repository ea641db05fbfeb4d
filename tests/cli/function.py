#!/usr/bin/env python3
"""A Lambda function in another language, for `sluice replay --bootstrap`: a minimal runtime with handlers that
behave well, or not. The first argument names the handler, the second is its parameter."""
import json
import os
import signal
import socket
import sys
import time

API = os.environ["AWS_LAMBDA_RUNTIME_API"]
api = replies = None
PATH = "/2018-06-01/runtime"
mode, parameter = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "")
calls = 0


def request(verb, path, body=""):
    """By hand: a process that imports http.client takes three times as long to start, and there are thousands."""
    global api, replies
    if not api:
        api = socket.create_connection(API.rsplit(":", 1))
        replies = api.makefile("rb")
    body = body.encode()
    api.sendall(f"{verb} {PATH}{path} HTTP/1.1\r\nHost: {API}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    line = replies.readline() or sys.exit("the Runtime API is gone")
    status = int(line.split()[1])
    headers = dict(line.decode().rstrip("\r\n").split(": ", 1) for line in iter(replies.readline, b"\r\n"))
    answer = replies.read(int(headers["Content-Length"]))
    if headers.get("Connection") == "close":
        api = None
    return status, headers, answer


def respond(request_id, body):
    return request("POST", f"/invocation/{request_id}/response", body)[0]


def fail(request_id, message):
    body = json.dumps({"errorMessage": message, "errorType": "Error", "stackTrace": []})
    return request("POST", f"/invocation/{request_id}/error", body)[0]


def sequence(record):
    return record["dynamodb"]["SequenceNumber"]


def is_poison(record):
    return sequence(record) in parameter.split(",")


def handle(request_id, headers, event, body):
    records = event["Records"]
    if mode == "answer":                # this text, whatever comes
        respond(request_id, parameter)
    elif mode == "error":               # a function error, always
        fail(request_id, "no")
    elif mode == "error-on":            # when one of these records is in the batch
        if any(map(is_poison, records)):
            return fail(request_id, "poison")
        respond(request_id, "null")
    elif mode in ("hang-on", "exit-on"):  # the same, with the event in its hands
        if any(map(is_poison, records)):
            time.sleep(1000) if mode == "hang-on" else sys.exit(3)
        respond(request_id, "null")
    elif mode == "name":                # names the first of these records
        bad = [sequence(r) for r in records if is_poison(r)][:1]
        respond(request_id, json.dumps({"batchItemFailures": [{"itemIdentifier": i} for i in bad]}))
    elif mode == "sum":                 # of a tumbling window
        total = event["state"].get("n", 0) + len(records)
        respond(request_id, json.dumps({"state": {"n": total, "final": event["isFinalInvokeForWindow"]}}))
    elif mode == "environment":         # says what it was given
        names = [n for n in os.environ if n.startswith(("AWS_LAMBDA", "LAMBDA", "_HANDLER", "SLUICE", "TZ", "_X_AMZN", "AWS_REGION", "AWS_DEFAULT_REGION"))]
        given = {n: os.environ[n] for n in names}
        given["deadline_in_s"] = round(int(headers["Lambda-Runtime-Deadline-Ms"]) / 1000 - time.time())
        given["arn"] = headers["Lambda-Runtime-Invoked-Function-Arn"]
        given["trace"] = headers["Lambda-Runtime-Trace-Id"]
        given["request"] = request_id
        fail(request_id, json.dumps(given))
    elif mode == "keep":                # every event, byte for byte, a line each
        with open(parameter, "ab") as kept:
            kept.write(body + b"\n")
        respond(request_id, "null")
    elif mode == "error-key":           # fails with the text of the first record's key
        key = next(iter(records[0]["dynamodb"]["Keys"].values()))
        fail(request_id, next(iter(key.values())))
    elif mode in ("say", "say-error"):  # this file's text, with the number of the call for '#', its request id for '@'
        text = open(parameter, "rb").read().replace(b"#", str(calls).encode()).replace(b"@", request_id.encode())
        stream = (sys.stdout if mode == "say" else sys.stderr).buffer
        stream.write(text)
        stream.flush()
        respond(request_id, "null")
    elif mode == "fail-and-say":        # a function error with this text
        fail(request_id, parameter.replace("#", str(calls)).replace("@", request_id))
    elif mode == "last-words":          # says something, and ends in this way
        print("last words", flush=True)
        sys.exit(3) if parameter == "exit" else os.kill(os.getpid(), signal.SIGSEGV) if parameter == "crash" else time.sleep(1000)
    elif mode == "show":                # the event itself
        fail(request_id, json.dumps(event))
    elif mode == "exit":                # dies with the event in its hands
        sys.exit(3)
    elif mode == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif mode == "exit-once":           # the same, but only in its first process
        try:
            os.close(os.open(parameter, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return respond(request_id, "null")
        sys.exit(3)
    elif mode == "meet":                # answers when so many of them are in a call at the same time
        with open("met", "ab", buffering=0) as met:
            met.write(b".")
        while os.path.getsize("met") < int(parameter):
            time.sleep(0.02)
        respond(request_id, "null")
    elif mode == "hang":
        time.sleep(1000)
    elif mode == "twice":
        respond(request_id, "null")
        assert respond(request_id, "null") in (400, 403)
    elif mode == "wrong-id":
        assert respond("00000000-0000-4000-8000-000000000000", "null") == 400
        respond(request_id, "null")
    elif mode == "refetch":             # forgets its answer once, and asks for the next event
        again = request("GET", "/invocation/next")
        assert again[1]["Lambda-Runtime-Aws-Request-Id"] == request_id
        respond(request_id, "null")
    elif mode == "too-large":
        assert respond(request_id, "x" * (6 * 1024 * 1024 + 101)) == 413
    elif mode == "connect":             # to this port of the loopback
        try:
            socket.create_connection(("127.0.0.1", int(parameter))).close()
            respond(request_id, "null")
        except OSError as error:
            fail(request_id, str(error))
    elif mode == "then-exit":           # answers, and is gone
        respond(request_id, "null")
        sys.exit(0)
    else:
        sys.exit(f"no handler {mode}")


if mode == "init-error":
    request("POST", "/init/error", json.dumps({"errorMessage": "no configuration", "errorType": "Function.Bad"}))
    sys.exit(1)
if mode == "stillborn":
    sys.exit(7)
while True:
    status, headers, body = request("GET", "/invocation/next")
    calls += 1
    handle(headers["Lambda-Runtime-Aws-Request-Id"], headers, json.loads(body), body)
