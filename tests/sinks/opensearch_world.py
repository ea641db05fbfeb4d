"""What the checks of opensearch:// share: a node, its indexes, random histories of a table, and what an index holds."""
import ctypes
import decimal
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, "tests/cli")
from harness import work_folder  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
SLUICE = f"{BUILD}/sluice"
TEMPLATE = json.loads(pathlib.Path("deploy/opensearch/template.json").read_text())["template"]
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2026-11-14T00:04:06.388"
folder = work_folder()
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[:3000]}")
    passed += 1


# ---- a node ----

def free_port():
    for _ in range(1000):
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    sys.exit("no free port")


class Node:
    """OpenSearch as a child of ours, which may be killed and started again on the same data."""

    def __init__(self, name, *settings):
        self.port, self.settings = free_port(), settings
        self.data, self.log = folder / name, open(folder / f"{name}.log", "ab")
        self.home = subprocess.run(["bash", "-c", "cd tests/services && . ./paths.sh && echo $opensearch_home"], capture_output=True, text=True,
                                   check=True).stdout.strip()
        self.start()

    def start(self, wait=True):
        libc = ctypes.CDLL(None)
        self.process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx512m", "-cp", f"{self.home}:{self.home}/*", "SearchNode",
             str(self.data), str(self.port), *self.settings],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))
        until = time.time() + 120
        while wait and not self.answers():
            check("OpenSearch starts", self.process.poll() is None and time.time() < until, self.log.name)
            time.sleep(0.1)

    def answers(self):
        try:
            return self.ask("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s").get("status") in ("green", "yellow")
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, method, path, body=None, fails=False):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method, headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.loads(answer.read() or b"{}", parse_float=decimal.Decimal)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            if not fails:
                raise OSError(f"{method} {path}: {error.code} {text[:500]}") from error
            return {"status": error.code, "text": text}

    def make(self, index, mappings=None, settings=None, aliases=None):
        body = {"settings": {"number_of_replicas": 0, "number_of_shards": 2, **(settings or {})}, "mappings": mappings or TEMPLATE["mappings"],
                "aliases": {k.replace("{index}", index): v for k, v in TEMPLATE["aliases"].items()} if aliases is None else aliases}
        self.ask("PUT", f"/{index}", body)

    def target(self, index, **options):
        query = "&".join(f"{k}={v}" for k, v in {"tls": "off", **options}.items())
        return f"opensearch://127.0.0.1:{self.port}/{index}?{query}"

    def documents(self, index):
        self.ask("POST", f"/{index}/_refresh")
        out, after = {}, None
        while True:
            page = self.ask("POST", f"/{index}/_search", {"size": 1000, "sort": [{"_id": "asc"}], **({"search_after": after} if after else {})})
            for hit in page["hits"]["hits"]:
                out[hit["_id"]] = hit["_source"]
                after = hit["sort"]
            if len(page["hits"]["hits"]) < 1000:
                return out


# ---- histories ----

def plain(value, numbers):
    """An attribute value as the document has it."""
    (kind, content), = value.items()
    number = (lambda n: n) if numbers == "text" else decimal.Decimal
    return {"S": lambda: content, "N": lambda: number(content), "B": lambda: content, "BOOL": lambda: content, "NULL": lambda: None,
            "SS": lambda: content, "NS": lambda: [number(n) for n in content], "BS": lambda: content,
            "L": lambda: [plain(v, numbers) for v in content],
            "M": lambda: {k: plain(v, numbers) for k, v in content.items()}}[kind]()


class History:
    """Random changes of a table, as a stream's records; `items` is what the table holds after them."""

    def __init__(self, seed, changes, keys):
        self.draw, self.items, self.records = random.Random(seed), {}, []
        self.names = [f"k{n}" for n in range(keys - 3)] + ["é|%\"\\ \n", "x" * 700, "sha256:tricky"]
        for n in range(changes):
            self.change(n)

    def image(self, key):
        draw = self.draw
        number = draw.choice([str(draw.randrange(10**6)), "-0.00125", "12345678901234567890123456789012345678", "1.2345678901234567890123456789",
                              "1e+30", "3E-20", "9007199254740993"])
        item = {**key, "status": {"S": draw.choice(["OPEN", "PAID", "é\n\"", ""])}, "total": {"N": number}, "version": {"N": str(draw.randrange(10**9))}}
        if draw.random() < 0.4:
            item["deep"] = {"M": {"l": {"L": [{"N": number}, {"S": "a"}, {"B": "AAH/"}, {"M": {"ns": {"NS": ["1", number]}}}]}, "b": {"BOOL": True}}}
        if draw.random() < 0.3:
            item["tags"] = {"SS": draw.sample(["a", "b", "c"], 2)}
            item["marks"] = {"NS": ["1", "2.50"]}
            item["photo"] = {"B": "AP8B"}
            item["none"] = {"NULL": True}
        return item

    def change(self, n):
        name = self.draw.choice(self.names)
        key = {"PK": {"S": name}, "SK": {"N": str(self.draw.randrange(2))}}
        at, old = json.dumps(key), None
        old = self.items.get(at)
        new = None if old and self.draw.random() < 0.3 else self.image(key)
        if new is None:
            del self.items[at]
        else:
            self.items[at] = new
        images = {**({"NewImage": new} if new else {}), **({"OldImage": old} if old else {})}
        self.records.append({
            "eventID": f"{n:032x}", "eventName": "REMOVE" if new is None else "MODIFY" if old else "INSERT", "eventVersion": "1.1",
            "eventSource": "aws:dynamodb", "awsRegion": "us-east-1", "eventSourceARN": ARN,
            "dynamodb": {"ApproximateCreationDateTime": 1795208640 + n // 10, "Keys": key, **images, "SequenceNumber": str(10**22 + n), "SizeBytes": 100,
                         "StreamViewType": "NEW_AND_OLD_IMAGES"}})

    def write(self, name, records=None):
        (folder / name).write_text(json.dumps({"Records": self.records if records is None else records}))
        return name


def sluice(verb, *args, timeout=600):
    run = subprocess.run([SLUICE, verb, *args], cwd=folder, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL,
                         env={**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"})
    run.out, run.err = run.stdout.decode(), run.stderr.decode(errors="replace")
    run.text = f"exit {run.returncode}\n{run.out}\n{run.err[-2500:]}"
    return run


def config(name, *routes, **more):
    (folder / name).write_text(json.dumps({"routes": routes, "report_batch_item_failures": True, "on_failure": f"jsonl:parked-{name}l", **more}))
    return name


def route(to, **more):
    return {"name": "search", "handler": "replicate", "to": to, **more}


def parked(name):
    path = folder / f"parked-{name}l"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def replay(conf, *inputs, faults="", seed=1, timeout=600):
    flags = ["--fault", faults, "--seed", str(seed)] if faults else []
    run = sluice("replay", "--config", conf, "--batch-size", "50", "--report-failures", "--quiet", *flags, *inputs, timeout=timeout)
    check(f"replay {conf} {inputs} {faults}", run.returncode == 0, run.text)
    return run


def live(node, index):
    """The documents that are no tombstones, without what is ours."""
    ours = ("sluice_order", "sluice_write", "sluice_hash", "sluice_types")
    return {i: {k: v for k, v in d.items() if k not in ours} for i, d in node.documents(index).items() if "sluice_deleted" not in d}


def same(a, b):
    """Numbers by value, whatever they are written as."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def compare(node, index, history, when, numbers="number", exact=True):
    """The index is the table. `exact`: down to each digit of a number."""
    wanted = [plain({"M": item}, numbers) for item in history.items.values()]
    have = list(live(node, index).values())
    order = lambda d: (d["PK"], str(d["SK"]))
    wanted.sort(key=order)
    have.sort(key=order)
    check(f"{when}: as many documents", len(have) == len(wanted), f"{len(have)} and not {len(wanted)}")
    for a, b in zip(have, wanted):
        if exact:
            check(f"{when}: the document of {order(b)}", same(a, b), f"{a}\nand not\n{b}")
        else:
            check(f"{when}: the document of {order(b)}", a["version"] == b["version"] and a.keys() == b.keys(), f"{a}\nand not\n{b}")
