#!/usr/bin/env python3
"""Webhooks in the random world: `sluice replay` through the real bootstrap, with kills, lost answers and redelivery, into a
replica, an archive and two receivers that fail half of their requests in every way they can. Each change arrives at least
once and in order per item; each signature is verified by the package standardwebhooks. SEEDS=first-last runs others."""
import collections
import http.server
import json
import os
import pathlib
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
READER = "SLUICE_READER_PYTHON"
if READER not in os.environ:
    python = subprocess.run(["tests/support/python/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execve(python, [python, *sys.argv], {**os.environ, READER: python})

from standardwebhooks import Webhook  # noqa: E402  (the package is that Python's)

SECRETS = {"HOOK_NEW": "whsec_bmV3LWtleS1vZi10aGUtd2ViaG9vay0wMTIz", "HOOK_OLD": "whsec_b2xkLWtleS1vZi10aGUtd2ViaG9vay0wMTIz"}
ITEMS, RECORDS = 9, 100
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[-1500:]}")
    passed += 1


# ---- a receiver that fails ----

class Receiver:
    """One HTTP server on a free port. `problem` becomes the first thing that should not have been."""

    AGAIN = ["500", "502", "504", "429", "503", "408", "425", "599"]
    WAYS = ["drop at once", "drop in head", "drop in body", "drop after", "reset after", "no http", "cut head", "cut body", "lie length",
            "slow and cut", "late", *(f"status {s}" for s in AGAIN)]
    FATAL = ["301", "302", "307", "401", "403", "404", "405", "410"]

    def __init__(self, seed, members, poison):
        self.random, self.members, self.poison = random.Random(seed), members, poison
        self.lock, self.problem = threading.Lock(), None
        self.position = collections.defaultdict(lambda: -1)  # of each item: the place of the last change that was taken
        self.busy = collections.defaultdict(list)            # of each item: connections of requests that are being answered
        self.taken, self.ids = collections.Counter(), {}
        self.requests = self.failures = 0
        self.server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()

    def serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            try:
                while self.one(connection, stream):
                    pass
            except OSError:
                pass

    def draw(self):
        with self.lock:
            self.requests += 1
            fails = self.random.random() < 0.5
            self.failures += fails
            if not fails:
                return self.random.choice(["200", "201", "202", "204", "chunked", "slow", "bare", "long", "continue"])
            if self.random.random() < 0.02:
                return f"status {self.random.choice(self.FATAL)}"
            rare = ["status 429", "status 503"]  # they cost a second of real time each
            return self.random.choice(rare if self.random.random() < 0.02 else [w for w in self.WAYS if w not in rare])

    def one(self, connection, stream):
        """One request and its answer; whether the connection goes on."""
        way = self.draw()
        if way == "drop at once":
            return False
        line = stream.readline()
        if not line or way == "drop in head":
            return False
        fields, length = {}, 0
        while (header := stream.readline()) not in (b"\r\n", b""):
            name, _, value = header.decode("latin-1").partition(":")
            fields[name.lower()] = value.strip()
        length = int(fields["content-length"])
        if way == "drop in body":
            stream.read(length // 2)
            return False
        body = stream.read(length)
        if len(body) < length:
            return False
        return self.answer(connection, line, fields, body, way)

    def fail(self, text):
        self.problem = self.problem or text

    def changes(self, body):
        """(item, place) of each message, in their order; and whether the poison is among them."""
        found = [(m["key"], m["place"]) for m in self.members(body)]
        return found, any(change == self.poison for change in found)

    def look(self, line, fields, body):
        if not line.startswith(b"POST /hook?team=7 HTTP/1.1"):
            self.fail(f"requested {line}")
        if fields.get("authorization") != "Bearer canary-of-the-webhook" or fields.get("x-team") != "a b":
            self.fail(f"headers {fields}")
        for secret in SECRETS.values():
            try:
                Webhook(secret).verify(body, fields)
            except Exception as why:
                self.fail(f"a signature is not valid: {why!r} {fields}")
        if self.ids.setdefault(fields["webhook-id"], body) != body:
            self.fail(f"one id for two bodies: {fields['webhook-id']}")

    @staticmethod
    def is_orphan(connection):
        """The process that sent the request has died: another may have sent all of it again, and more."""
        try:
            return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def begin(self, connection, line, fields, body):
        with self.lock:
            self.look(line, fields, body)
            changes, poisoned = self.changes(body)
            at = dict(self.position)
            for item, place in changes:
                if any(not self.is_orphan(other) for other in self.busy[item]):
                    self.fail(f"two requests of {item} at a time")
                if place > at.get(item, -1) + 1:
                    self.fail(f"{item}: {place} after {at.get(item, -1)}")
                at[item] = place
            for item in {item for item, _ in changes}:
                self.busy[item].append(connection)
            return changes, poisoned

    def end(self, connection, changes, taken):
        with self.lock:
            is_orphan = self.is_orphan(connection)
            for item in {item for item, _ in changes}:
                self.busy[item].remove(connection)
            for item, place in changes if taken else []:
                if not is_orphan:
                    self.position[item] = place
                self.taken[item, place] += 1

    def answer(self, connection, line, fields, body, way):
        changes, poisoned = self.begin(connection, line, fields, body)
        if poisoned:  # refused, alone or with its neighbours; it counts as passed for its order
            self.end(connection, changes, len(changes) == 1)
            connection.sendall(b"HTTP/1.1 422 No\r\ncontent-length: 0\r\n\r\n")
            return True
        send = connection.sendall
        good = {"200": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "201": b"HTTP/1.1 201 Made\r\ncontent-length: 0\r\n\r\n",
                "202": b"HTTP/1.1 202 Later\r\ncontent-length: 5\r\n\r\nlater", "204": b"HTTP/1.1 204 Nothing\r\n\r\n",
                "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                "slow": b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nslowly...", "bare": b"HTTP/1.1 200 OK\r\n\r\nto the end",
                "long": b"HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n" + 90000 * b"x",
                "continue": b"HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"}
        # Counted before it is sent: the next request may be here before the answer has left. What is lost on its way is sent again.
        self.end(connection, changes, way in good)
        if way in good:
            for piece in ([good[way][i:i + 7] for i in range(0, 49, 7)] if way == "slow" else [good[way]]):
                send(piece)
                time.sleep(0.002 if way == "slow" else 0)
            return way not in ("bare", "slow")
        if way.startswith("status "):
            status, after = way[7:], self.random.choice(["", "", "retry-after: 0\r\n", "retry-after: soon\r\n"])
            where = "location: http://169.254.169.254/latest/meta-data/\r\n" if status[0] == "3" else ""
            send(f"HTTP/1.1 {status} No\r\n{after}{where}content-length: 6\r\n\r\n<html>".encode())
            return True
        if way == "late":
            time.sleep(0.05)
        send({"no http": b"220 mail.example.com ESMTP\r\n", "cut head": b"HTTP/1.1 200 OK\r\ncontent-le",
              "cut body": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345", "lie length": b"HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n{}",
              "slow and cut": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"}.get(way, b""))
        if way == "slow and cut":
            for _ in range(5):
                send(b"x")
                time.sleep(0.01)
        if way == "reset after":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return False


# ---- one world ----

def history(rng):
    """Records, with the place of each among its item's."""
    places, records = collections.Counter(), []
    for n in range(RECORDS):
        key = f"item-{min(rng.randrange(ITEMS), rng.randrange(ITEMS))}"  # some are hot
        place, places[key] = places[key], places[key] + 1
        image = {"PK": {"S": key}, "place": {"N": str(place)}, "text": {"S": rng.choice(["ä€", "\"quoted\\", "x" * 300, "\u2028"])}}
        records.append({"eventID": f"{n:032x}", "eventName": "MODIFY" if place else "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
                        "awsRegion": "us-east-1", "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-11-14T00:04:06.388",
                        "dynamodb": {"ApproximateCreationDateTime": 1795208640 + n // 10, "Keys": {"PK": image["PK"]}, "NewImage": image,
                                     "SequenceNumber": str(10**20 + n), "SizeBytes": 10, "StreamViewType": "NEW_IMAGE"}})
    return records, {(key, place) for key, n in places.items() for place in range(n)}


def config(ports):
    options = "secret=HOOK_NEW,HOOK_OLD&header_env.Authorization=HOOK_AUTH&header.X-Team=a%20b&attempts=6"
    url = "http://127.0.0.1:{}/hook?team=7#{}"
    message = '{{"key":"{PK}","place":{place},"text":"{text}"}}'
    return {"report_batch_item_failures": True, "on_failure": "file:parked", "routes": [
        {"name": "replica", "handler": "replicate", "to": "sqlite:copy.db?table=t"},
        {"name": "archive", "handler": "archive", "to": "file:archived"},
        {"name": "hook", "handler": "notify", "to": url.format(ports[0], options), "body": "json"},
        {"name": "arrays", "handler": "notify", "to": url.format(ports[1], options + "&batch=9&max_bytes=1500&id=arrays"),
         "message": message, "escape": "json"}]}


def of_record(body):
    image = json.loads(body)["NewImage"]
    return [{"key": image["PK"], "place": int(image["place"])}]


def parked(folder):
    found = collections.Counter()
    for path in (folder / "parked").rglob("*"):
        if path.is_file() and ".partial" not in path.parts:
            for line in path.read_text().splitlines():
                note = json.loads(line)
                record = json.loads(note["record"]) if isinstance(note.get("record"), str) else note["record"]
                found[note["route"], record["dynamodb"]["NewImage"]["PK"]["S"], int(record["dynamodb"]["NewImage"]["place"]["N"])] += 1
    return found


def world(seed):
    rng = random.Random(seed)
    records, changes = history(rng)
    poison = rng.choice(sorted(changes)) if seed % 2 else None
    receivers = [Receiver(seed, of_record, poison), Receiver(seed + 1000, json.loads, poison)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "in.json").write_text(json.dumps({"Records": records}))
        (folder / "sluice.json").write_text(json.dumps(config([r.port for r in receivers])))
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")} | SECRETS | {"HOOK_AUTH": "Bearer canary-of-the-webhook"}
        done = subprocess.run([f"{BUILD}/sluice", "replay", "--batch-size", str(rng.choice([10, 40, 100])), "--seed", str(seed), "--timeout", "60",
                               "--parallelization", str(rng.choice([1, 3])), "--report-failures", "--log", "log.txt",
                               "--fault", "crash@4%,die@8%,lost@8%", "--fault", "connect@5%", "in.json"],
                              cwd=folder, env=env, capture_output=True, timeout=600)
        said = (done.stdout + done.stderr).decode(errors="replace") + (folder / "log.txt").read_text(errors="replace")
        for receiver in receivers:
            receiver.close()
            check(f"seed {seed}: what arrives", receiver.problem is None, receiver.problem)
        check(f"seed {seed}: the replay ends well", done.returncode == 0, said)
        for receiver in receivers:
            arrived = set(receiver.taken)
            check(f"seed {seed}: each change arrives", arrived == changes, f"{sorted(changes - arrived)[:5]} {said[-600:]}")
        requests, failures = sum(r.requests for r in receivers), sum(r.failures for r in receivers)
        check(f"seed {seed}: about half of the requests failed", failures * 4 > requests > len(changes), f"{failures} of {requests}")
        rows = sqlite3.connect(folder / "copy.db").execute("select count(*) from sqlite_master").fetchone()[0]
        check(f"seed {seed}: the other routes ran", rows > 0 and any((folder / "archived").rglob("*.gz")))
        check(f"seed {seed}: the poison alone is parked", set(parked(folder)) == ({("hook", *poison), ("arrays", *poison)} if poison else set()),
              f"{poison} {parked(folder)} {said[-600:]}")
        for secret in [*SECRETS.values(), "canary-of-the-webhook", "team=7"]:
            check(f"seed {seed}: no secret is shown", secret.removeprefix("whsec_") not in said, secret)
        return requests, failures


# ---- a receiver that takes fewer at a time ----

def refused_together():
    """Requests that are refused together with a Retry-After come back at half the number, not all at once."""
    wave, lock, held, most = 8, threading.Lock(), [0], [0]
    together, seen = threading.Barrier(wave), [0]

    class Full(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                seen[0] += 1
                is_first = seen[0] <= wave
                held[0] += 1
                most[0] = most[0] if is_first else max(most[0], held[0])
            together.wait(600) if is_first else time.sleep(0.2)
            with lock:
                held[0] -= 1
            self.send_response(429 if is_first else 200)
            if is_first:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Full)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "sluice.json").write_text(json.dumps({"on_failure": "report", "routes": [
            {"name": "w", "handler": "notify", "to": f"http://127.0.0.1:{server.server_port}/x#in_flight=64"}]}))
        (folder / "in.jsonl").write_text("".join(json.dumps({"Item": {"PK": {"S": str(i)}}}) + "\n" for i in range(wave)))
        run = subprocess.run([f"{BUILD}/sluice", "replay", "--quiet", "--keys", "PK", "in.jsonl"], cwd=folder, capture_output=True, text=True, timeout=600)
    server.shutdown()
    check("refused together, all arrive", run.returncode == 0 and seen[0] == 2 * wave, (seen, run.stdout, run.stderr))
    check("refused together, half come back at once", 1 <= most[0] <= wave // 2 + 1, most)


def main():
    refused_together()
    first, _, last = os.environ.get("SEEDS", "1-2").partition("-")
    began, totals = time.time(), []
    for seed in range(int(first), int(last or first) + 1):
        totals.append(world(seed))
    requests, failures = map(sum, zip(*totals))
    print(f"{requests} requests, {failures} failed, {time.time() - began:.0f} s")
    print(f"{passed} passed, 0 failed")


main()
