"""What the checks of postgres:// share: a server that may be killed, its tables, a proxy that cuts, and what a table holds."""
import ctypes
import decimal
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

from table_world import check, folder, same
from harness import WAIT_S  # (tests/cli and tests/services, as table_world says)
from ports import free_port

PASSWORD = "sluice-tests-postgres"
os.environ["PGPASSWORD"] = PASSWORD
KEYS = '"PK" text COLLATE "C", "SK" numeric'


class Server:
    """PostgreSQL as a child of ours, which may be killed and started again on the same data."""

    def __init__(self, name, settings=""):
        self.port, self.folder, self.settings, self.process = free_port(), folder / name, settings, None
        self.folder.mkdir()
        self.log = open(folder / f"{name}.log", "ab")
        self.start()

    def start(self):
        libc = ctypes.CDLL(None)
        until = time.monotonic() + WAIT_S
        while True:
            if self.process is None or self.process.poll() is not None:  # (the one before may not be quite gone)
                self.process = subprocess.Popen([os.path.abspath("tests/services/postgres.sh"), str(self.port)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                                stdout=self.log, stderr=self.log, env={**os.environ, "POSTGRES_SETTINGS": self.settings},
                                                preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))
            if subprocess.run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode == 0:
                return
            check("PostgreSQL starts", time.monotonic() < until, self.log.name)
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def sql(self, text, database="sluice", options=""):
        """The rows, each a list of texts; NULL is None."""
        run = subprocess.run(["psql", "-qXAtw", "-h", "127.0.0.1", "-p", str(self.port), "-U", "sluice", "-d", database, "-v", "ON_ERROR_STOP=1", "-F", "\x1f",
                              "-R", "\x1e", "-P", "null=\x1d", "-c", text], capture_output=True, check=False, env={**os.environ, "PGOPTIONS": options})
        check(f"psql: {text[:200]}", run.returncode == 0, run.stderr.decode())
        rows = run.stdout.decode().rstrip("\n")
        return [[None if v == "\x1d" else v for v in row.split("\x1f")] for row in rows.split("\x1e")] if rows else []

    def make(self, table, columns="", keys=KEYS):
        names = ", ".join(key.split()[0] for key in keys.split(", "))
        self.sql(f"CREATE TABLE {table} ({keys}, item jsonb NOT NULL, {columns + ', ' if columns else ''}PRIMARY KEY ({names}))")

    def target(self, table, port=None, **options):
        query = "&".join(f"{k}={urllib.parse.quote(str(v), safe='/:,()')}" for k, v in {"user": "sluice", **options}.items())
        return f"postgres://127.0.0.1:{port or self.port}/sluice?table={table}&{query}"

    def rows(self, table):
        """Key -> item, as the column `item` has it."""
        out = {}
        for pk, sk, item in self.sql(f'SELECT "PK", "SK"::text, item::text FROM {table}'):
            out[(pk, decimal.Decimal(sk))] = json.loads(item)
        return out


def value(v):
    """By value: numbers as decimals, sets as sets."""
    (kind, content), = v.items()
    return {"N": lambda: (kind, decimal.Decimal(content)), "SS": lambda: (kind, sorted(content)), "BS": lambda: (kind, sorted(content)),
            "NS": lambda: (kind, sorted(map(decimal.Decimal, content))), "L": lambda: (kind, [value(x) for x in content]),
            "M": lambda: (kind, {k: value(x) for k, x in content.items()})}.get(kind, lambda: (kind, content))()


def live(rows):
    """The rows that are no tombstones, without what is ours."""
    return {key: {k: v for k, v in item.items() if not k.startswith("sluice_")} for key, item in rows.items() if "sluice_deleted" not in item}


def compare(server, table, history, when):
    """The table is the history's, down to each digit."""
    wanted = {(i["PK"]["S"], decimal.Decimal(i["SK"]["N"])): i for i in history.items.values()}
    have = live(server.rows(table))
    check(f"{when}: as many rows", have.keys() == wanted.keys(), f"{len(have)} and not {len(wanted)}")
    for key, item in wanted.items():
        check(f"{when}: the row of {key}", same(value({"M": have[key]}), value({"M": item})), f"{have[key]}\nand not\n{item}")


class Proxy:
    """Between us and the server: cuts a connection after so many bytes of one direction, changes one byte of an answer, or holds still."""

    def __init__(self, to):
        self.to, self.cut_up, self.cut_down, self.lie, self.stalls, self.connections = to, None, None, None, False, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        left = {client: self.cut_up, None: self.cut_down}
        lie, at = self.lie, 0  # (which byte, how)
        self.cut_up = self.cut_down = self.lie = None  # only one connection is cut, or lied to
        try:
            server = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            client.close()
            return
        left[server] = left.pop(None)
        other = {client: server, server: client}
        with client, server:
            while True:
                for end in select.select([client, server], [], [])[0]:
                    if self.stalls:
                        time.sleep(60)
                    data = end.recv(65536) if left[end] is None else end.recv(min(65536, max(left[end], 1)))
                    if not data or left[end] == 0:
                        return
                    if left[end] is not None:
                        left[end] -= len(data)
                    if end is server and lie and at <= lie[0] < at + len(data):
                        n = lie[0] - at
                        data = data[:n] + bytes([data[n] ^ lie[1]]) + data[n + 1:]
                    at += len(data) if end is server else 0
                    other[end].sendall(data)
                    if left[end] == 0:
                        return

    def close(self):
        self.listener.close()
