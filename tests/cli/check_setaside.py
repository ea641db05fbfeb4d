#!/usr/bin/env python3
"""A route whose target is down stops no other: `sluice tail` on DynamoDB Local's stream, a target behind a proxy that is refused,
hangs or answers late, letters in a queue of moto. The other routes go on meanwhile; afterwards all tables are equal, whoever
drained, and whoever was killed in between."""
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import threading
import time

from harness import BUILD, check, ended, finish, kills, until, work_folder
from servers import Servers

LONG = bool(os.environ.get("LONG"))
kills()
folder = work_folder()
servers = Servers("dynamodb", "moto")
dynamodb, sqs, DYNAMODB, MOTO = servers.dynamodb, servers.sqs, servers.endpoint, servers.env["MOTO_ENDPOINT"]
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.credentials}


def waiting(queue):
    facts = sqs("GetQueueAttributes", QueueUrl=f"{MOTO}/123456789012/{queue}", AttributeNames=["All"])["Attributes"]
    return sum(int(facts[f"ApproximateNumberOfMessages{kind}"]) for kind in ("", "NotVisible", "Delayed"))


class Proxy(threading.Thread):
    """In front of DynamoDB Local: up, refused (connections are closed at once), hanging (nobody answers)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mode, self.listener = "up", socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.live = set()
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        self.live.add(client)
        try:
            if self.mode == "refused":
                return
            host, port = DYNAMODB.removeprefix("http://").split(":")
            server = socket.create_connection((host, int(port)))
            self.live.add(server)
            back = threading.Thread(target=self.pipe, args=(server, client), daemon=True)
            back.start()
            self.pipe(client, server)
        except OSError:
            pass
        finally:
            client.close()

    def pipe(self, one, other):
        try:
            while data := one.recv(65536):
                while self.mode == "hanging":
                    time.sleep(0.05)
                if self.mode == "refused":
                    break
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def turn(self, mode):
        self.mode = mode
        if mode == "refused":
            for end in list(self.live):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


proxy = Proxy()
TARGET = f"dynamodb://%s?endpoint=http://127.0.0.1:{proxy.port}"
COUNTERS = [{"key": {"PK": "S#{status}"}, "add": {"n": 1, "sum": "{cost}"}}]
CONFIG = {"report_batch_item_failures": True, "on_failure": "jsonl:parked.jsonl", "routes": [
    {"name": "copy", "handler": "replicate", "to": TARGET % "copy", "set_aside": f"sqs://later?endpoint={MOTO}"},
    {"name": "plain", "handler": "replicate", "to": "sqlite:out.db?table=plain"},
    {"name": "sums", "handler": "aggregate", "to": TARGET % "sums", "counters": COUNTERS, "set_aside": f"sqs://later2?endpoint={MOTO}"},
    {"name": "totals", "handler": "aggregate", "to": "sqlite:out.db?table=totals", "counters": COUNTERS},
    {"name": "say", "handler": "notify", "to": "jsonl:said.jsonl"}]}


def table(name, stream=False):
    dynamodb("CreateTable", TableName=name, BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
             KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
             **({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}} if stream else {}))


def items(name):
    """Without what is ours: PK -> (status, cost)."""
    found, more = {}, {}
    while True:
        page = dynamodb("Scan", TableName=name, ConsistentRead=True, **more)
        for item in page["Items"]:
            if "status" in item and "sluice_deleted" not in item:
                found[item["PK"]["S"]] = (item["status"]["S"], item["cost"]["N"])
        if "LastEvaluatedKey" not in page:
            return found
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def rows(name):
    try:
        with sqlite3.connect(f"file:{folder}/out.db?mode=ro", uri=True) as db:
            return [json.loads(text) for text, in db.execute(f"SELECT item FROM {name}")]
    except sqlite3.OperationalError:
        return []


def plain():
    return {row["PK"]["S"]: (row["status"]["S"], row["cost"]["N"]) for row in rows("plain") if "sluice_deleted" not in row}


def sums_of(found):
    sums = {}
    for status, cost in found.values():
        n, total = sums.get(f"S#{status}", (0, 0))
        sums[f"S#{status}"] = (n + 1, total + int(cost))
    return sums


def sums_in(found):
    return {row["PK"]["S"]: (int(row["n"]["N"]), int(row["sum"]["N"])) for row in found
            if row["PK"]["S"].startswith("S#") and int(row.get("n", {"N": "0"})["N"])}


def tail(*args):
    return subprocess.Popen([f"{BUILD}/sluice", "tail", "--table", "orders", "--endpoint-url", DYNAMODB, "--checkpoint", "place.json",
                             "--timeout", "6", "--batch-size", "50", "--quiet", *args], cwd=folder, env=ENV, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


dice = random.Random(9)


def write(n):
    for _ in range(n):
        key = {"PK": {"S": f"k{dice.randrange(40)}"}}
        if dice.random() < 0.2:
            dynamodb("DeleteItem", TableName="orders", Key=key)
        else:
            dynamodb("PutItem", TableName="orders", Item={**key, "status": {"S": dice.choice(["NEW", "PAID", "SENT"])}, "cost": {"N": str(dice.randrange(500))}})


def is_right():
    source = items("orders")
    return items("copy") == source and sums_in(dynamodb("Scan", TableName="sums", ConsistentRead=True)["Items"]) == sums_of(source)


def world(name, mode, *args, kills=0):
    """Writes before, during and after an outage; the other routes are up to date all the time."""
    write(60)
    process = tail(*args)
    check(f"{name}: at first all is well", until(lambda: plain() == items("orders") and is_right()), waiting("later"))
    proxy.turn(mode)
    for i in range(4):
        write(25)
        if kills and i % 2:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = tail(*args)
        began = time.time()
        good = until(lambda: plain() == items("orders") and sums_in(rows("totals")) == sums_of(items("orders")))
        check(f"{name}: the other routes go on", good, f"{time.time() - began} s")
        if i > 1 and not kills:
            check(f"{name}: and not late", time.time() - began < 20, time.time() - began)
    check(f"{name}: letters wait", waiting("later") > 0 and waiting("later2") > 0)
    check(f"{name}: the target lacks them", not is_right())
    proxy.turn("up")
    write(10)
    if "off" in args:
        check(f"{name}: nobody drains", until(lambda: plain() == items("orders")) and waiting("later") > 0)
        for queue in ("later", "later2"):
            run = subprocess.run([f"{BUILD}/sluice", "redrive", "--delete-done", f"sqs://{queue}?endpoint={MOTO}", "--wait", "1", "--timeout", "20"],
                                 cwd=folder, env=ENV, capture_output=True, text=True, timeout=600)
            check(f"{name}: redrive drains", run.returncode == 0 and "route=" in run.stdout, run.stdout + run.stderr)
    check(f"{name}: afterwards all is equal", until(lambda: is_right() and waiting("later") + waiting("later2") == 0),
          f"{waiting('later')} {waiting('later2')} {is_right()}")
    process.terminate()
    out = ended(process)[0].decode()
    check(f"{name}: tail ends in order", process.returncode == 0, out)
    check(f"{name}: and says what it did", "set aside" in out or kills, out)
    check(f"{name}: nothing was parked", not (folder / "parked.jsonl").exists() or not (folder / "parked.jsonl").read_text())


table("orders", stream=True)
table("copy")
table("sums")
for queue in ("later", "later2"):
    sqs("CreateQueue", QueueName=queue, Attributes={"VisibilityTimeout": "30"})
(folder / "sluice.json").write_text(json.dumps(CONFIG))
world("in this process", "refused", "--in-process")
world("in sandboxes, with kills, drained by hand", "hanging", "--concurrency", "2", "--drain", "off", kills=2)
if LONG:
    world("in sandboxes", "hanging", "--concurrency", "2")
    world("drained by hand", "refused", "--in-process", "--drain", "off")
    world("with kills", "refused", "--in-process", kills=3)
done = subprocess.run([f"{BUILD}/sluice", "tail", "--table", "orders", "--drain", "maybe"], cwd=folder, env=ENV, capture_output=True, text=True)
check("--drain is on or off", done.returncode == 2 and "--drain must be on or off" in done.stderr, done.stderr)
if LONG:
    done = subprocess.run([f"{BUILD}/sluice", "verify", "--table", "orders", "--endpoint-url", DYNAMODB, "--max-lag", "0"], cwd=folder, env=ENV,
                          capture_output=True, text=True, timeout=600)
    check("verify proves it", done.returncode == 0, done.stdout + done.stderr)
finish()
