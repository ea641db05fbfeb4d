"""What the checks of opensearch:// share: a node, its indexes, and what an index holds."""
import ctypes
import decimal
import json
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request

from table_world import check, folder, same
from harness import WAIT_S  # (tests/cli and tests/services, as table_world says)
from ports import free_port

TEMPLATE = json.loads(pathlib.Path("deploy/opensearch/template.json").read_text())["template"]


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
        until = time.monotonic() + WAIT_S
        while wait and not self.answers():
            check("OpenSearch starts", self.process.poll() is None and time.monotonic() < until, self.log.name)
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


def plain(value, numbers):
    """An attribute value as the document has it."""
    (kind, content), = value.items()
    number = (lambda n: n) if numbers == "text" else decimal.Decimal
    return {"S": lambda: content, "N": lambda: number(content), "B": lambda: content, "BOOL": lambda: content, "NULL": lambda: None,
            "SS": lambda: content, "NS": lambda: [number(n) for n in content], "BS": lambda: content,
            "L": lambda: [plain(v, numbers) for v in content],
            "M": lambda: {k: plain(v, numbers) for k, v in content.items()}}[kind]()


def live(node, index):
    """The documents that are no tombstones, without what is ours."""
    ours = ("sluice_order", "sluice_write", "sluice_hash", "sluice_types")
    return {i: {k: v for k, v in d.items() if k not in ours} for i, d in node.documents(index).items() if "sluice_deleted" not in d}


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
