#!/usr/bin/env python3
"""Streams of thousands of shards: `sluice tail` on a scripted stream of lineages (a shard, its child, the child's child, ...). Every record
is handled, parents before children, also when shards split while tail is killed and begun again; and a request
takes no more processor time where there are more shards, nor a shard more memory. LONG=1: 10,000 shards."""
import collections
import json
import os
import resource
import signal
import socketserver
import subprocess
import sys
import threading
import time

from harness import BUILD, check, finish, kills, until, work_folder

folder = work_folder()
kills()
ARN = "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-01T00:00:00.000"
ENV = {**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
PAGE = 100
GENERATIONS = 5
SIZES = (200, 2000) if os.environ.get("LONG") else (60, 500)  # lineages
CONFIG = {"report_batch_item_failures": True, "on_failure": "report", "routes": [{"name": "say", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{PK} {generation}"}]}


class Stream(socketserver.BaseRequestHandler):
    """HTTP/1.1 with kept connections; no more of it than the client sends."""

    def handle(self):
        try:
            self.serve()
        except ConnectionError:  # the client was killed
            pass

    def serve(self):
        file = self.request.makefile("rb")
        while (line := file.readline()):
            length, target = 0, ""
            while (line := file.readline().strip()):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                elif name.lower() == b"x-amz-target":
                    target = value.strip().decode().rpartition(".")[2]
            ask = json.loads(file.read(length))
            if target == "DescribeStream" and "ShardFilter" not in ask:
                time.sleep(self.server.world.list_s)
            status, answer = self.server.world.answer(target, ask)
            body = json.dumps(answer).encode()
            self.request.sendall(b"HTTP/1.1 %d x\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: %d\r\n\r\n" % (status, len(body)) + body)


class World:
    """Lineage L has the shards L-0, L-1, ...; the last is open. Each has one record."""

    def __init__(self, lineages, generations):
        self.lock, self.asked = threading.Lock(), collections.Counter()
        self.shards, self.number = {}, {}
        self.last = [generations - 1] * lineages
        self.list_s, self.refuses, self.ignores = 0, False, False  # a page of the list takes so long; the filter CHILD_SHARDS
        for g in range(generations):
            for n in range(lineages):
                self.add(n, g)
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Stream, bind_and_activate=False)
        server.request_queue_size, server.daemon_threads, server.world = 256, True, self
        server.server_bind()
        server.server_activate()
        self.server, self.url = server, f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def add(self, lineage, generation):
        name = f"shardId-{lineage:08}-{generation:02}"
        self.shards[name] = (lineage, generation)
        self.number[name] = 10 ** 20 + len(self.number)

    def split(self, lineage):
        """The open shard ends, and has a child."""
        with self.lock:
            self.last[lineage] += 1
            self.add(lineage, self.last[lineage])

    def records(self):
        return {(str(n), g) for n, g in self.shards.values()}

    def answer(self, target, ask):
        with self.lock:
            self.asked[target] += 1
            if target == "DescribeStream":
                names = list(self.shards)
                if ask.get("ShardFilter"):
                    self.asked["children"] += 1
                    if self.refuses:
                        return 400, {"__type": "x#ValidationException", "message": "ShardFilter"}
                if ask.get("ShardFilter") and not self.ignores:
                    lineage, generation = self.shards[ask["ShardFilter"]["ShardId"]]
                    names = [f"shardId-{lineage:08}-{generation + 1:02}"] if generation < self.last[lineage] else []
                at = names.index(ask["ExclusiveStartShardId"]) + 1 if ask.get("ExclusiveStartShardId") else 0
                page = names[at:at + PAGE]
                return 200, {"StreamDescription": {"StreamArn": ARN, "StreamStatus": "ENABLED", "StreamViewType": "NEW_AND_OLD_IMAGES", "Shards": [self.shard(n) for n in page],
                                                   **({"LastEvaluatedShardId": page[-1]} if at + PAGE < len(names) else {})}}
            if target == "GetShardIterator":
                after = int(ask.get("SequenceNumber", "0"))
                return 200, {"ShardIterator": f"{ask['ShardId']} {after}"}
            if target == "GetRecords":
                name, after = ask["ShardIterator"].split()
                lineage, generation = self.shards[name]
                records = [self.record(name)] if int(after) < self.number[name] else []
                is_open = generation == self.last[lineage]
                return 200, {"Records": records, **({"NextShardIterator": f"{name} {self.number[name]}"} if is_open or records else {})}
            return 400, {"__type": "x#ValidationException", "message": target}

    def shard(self, name):
        lineage, generation = self.shards[name]
        return {"ShardId": name, **({"ParentShardId": f"shardId-{lineage:08}-{generation - 1:02}"} if generation else {}),
                "SequenceNumberRange": {"StartingSequenceNumber": str(self.number[name]), **({} if generation == self.last[lineage] else {"EndingSequenceNumber": str(self.number[name])})}}

    def record(self, name):
        lineage, generation = self.shards[name]
        key = {"PK": {"S": str(lineage)}}
        return {"eventID": name, "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
                "dynamodb": {"ApproximateCreationDateTime": 1.7e9, "Keys": key, "NewImage": {**key, "generation": {"N": str(generation)}}, "SequenceNumber": str(self.number[name]),
                             "SizeBytes": 9, "StreamViewType": "NEW_AND_OLD_IMAGES"}}


def tail(world, place, *args):
    return subprocess.Popen([f"{BUILD}/sluice", "tail", "--stream", ARN, "--endpoint-url", world.url, *(("--in-process", "--checkpoint", place) if place else ()), *args], cwd=folder, env=ENV,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    """(status, its words, processor seconds, MB)"""
    words = process.stdout.read() + process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, words[-2000:], usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def said():
    path = folder / "said.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return [(n, int(g)) for n, g in (line.split() for line in lines)]


def in_order(lines):
    """The first time that each generation of a lineage is said."""
    seen = collections.defaultdict(int)
    for n, g in lines:
        if g > seen[n]:
            return False
        seen[n] = max(seen[n], g + 1)
    return True


def grows_as_the_list():
    spent = {}
    for lineages in SIZES:
        world = World(lineages, GENERATIONS)
        whole = (*ended(tail(world, f"{lineages}.json", "--once")), sum(world.asked.values()))
        lines = said()
        check(f"{lineages * GENERATIONS} shards are handled", whole[0] == 0 and set(lines) == world.records() and len(lines) == len(world.records()), whole[1])
        check(f"{lineages * GENERATIONS} shards: parents first", in_order(lines))
        again = (*ended(tail(world, f"{lineages}.json", "--once")), sum(world.asked.values()) - whole[4])
        check(f"{lineages * GENERATIONS} shards, begun again: nothing is new", again[0] == 0 and not said(), again[1])
        spent[lineages] = whole, again
        if os.environ.get("TIMES"):
            print(lineages * GENERATIONS, [f"{x[2]:.2f} s {x[3]:.0f} MB" for x in spent[lineages]], dict(world.asked), flush=True)
    for k, what in enumerate(("read", "begun again")):
        few, many = spent[SIZES[0]][k], spent[SIZES[1]][k]
        each = [max(one[2], 0.05) / one[4] for one in (few, many)]
        check(f"{what}: with more shards a request takes less than twice the processor time", each[1] < 2 * each[0],
              f"{few[2]:.2f} s for {few[4]}, {many[2]:.2f} s for {many[4]}")
        check(f"{what}: and less than 30 KB for each more", many[3] - few[3] < (SIZES[1] - SIZES[0]) * GENERATIONS * 30 / 1024, f"{few[3]:.0f} MB and {many[3]:.0f} MB")


def comes(*said):
    return until(lambda: all(line in (folder / "said.jsonl").read_text() for line in said))


def children_begin_at_once():
    """A list of many pages takes long: whoever ends asks for its children alone. A service that does not know the filter is not asked again."""
    for what in ("known", "leases", "refused", "ignored"):
        world = World(150, 1)
        world.refuses, world.ignores = what == "refused", what == "ignored"
        (folder / "said.jsonl").write_text("")
        # (By themselves leases are looked at every 300 s.)
        leases = ("--leases", "sqlite:leases.db?table=leases", "--lease-seconds", "600")
        process = tail(world, None, *leases) if what == "leases" else tail(world, f"children-{what}.json")
        began = time.monotonic()
        check(f"{what}: all begin", comes(*(f'"{n} 0"' for n in range(150))))
        if what in ("known", "leases"):
            check(f"{what}: at once", time.monotonic() - began < 250)
            time.sleep(1)
            world.list_s = 600
        for lineage in (7, 77):
            world.split(lineage)
        check(f"{what}: the children are handled", comes('"7 1"', '"77 1"'), dict(world.asked))
        world.split(7)
        check(f"{what}: and theirs", comes('"7 2"'), dict(world.asked))
        asked = world.asked["children"]
        check(f"{what}: they were asked for", asked == 1 if what == "refused" else asked >= 2, dict(world.asked))
        process.kill()
        ended(process)
        said()


def a_storm_of_splits():
    """Every shard ends again and again, and tail is killed in between."""
    world = World(300, 2)
    process, lines = tail(world, "storm.json"), []
    for k in range(6):
        time.sleep(1.2)
        for lineage in range(k % 3, 300, 3):
            world.split(lineage)
        if k % 2:
            process.send_signal(signal.SIGKILL)
            ended(process)
            process = tail(world, "storm.json")
    process.send_signal(signal.SIGTERM)
    ended(process)
    last = ended(tail(world, "storm.json", "--once"))
    lines = said()
    check("a storm of splits: every record is handled", last[0] == 0 and set(lines) == world.records(), (last[1], len(set(lines)), len(world.records())))
    check("a storm of splits: parents first", in_order(lines))


def main():
    (folder / "sluice.json").write_text(json.dumps(CONFIG))
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    grows_as_the_list()
    children_begin_at_once()
    a_storm_of_splits()
    finish()


sys.exit(main())
