#!/usr/bin/env python3
"""What the function writes is its log: it goes to standard error or a file, results alone go to standard output, and
what a broken environment says again and again is said once, with its count."""
import http.server
import json
import re
import threading

from harness import Run, check, finish, record, work_folder, write_event

folder = work_folder()
ten = [record(n) for n in range(1, 11)]


def said(text, function="say", flags=(), records=ten):
    """A function that writes `text` at every invocation. `#` is the number of the invocation, `@` its request id."""
    (folder / "said.txt").write_bytes(text)
    return Run(folder, "--quiet", "--batch-size", "1", *flags, function=f"{function} said.txt", records=records)


def counted(run):
    """By line, how often it is said to have been written: the first one is written out, the others are counted."""
    return {l.split("  ", 1)[1]: int(l[2:].split("  ")[0].replace(",", "")) for l in run.err.splitlines() if l.startswith("× ")}


def streams():
    run = said(b"to stdout\n")
    check("standard output has the summary alone", "to stdout" not in run.out and run.out.startswith("records in") and "to stdout" in run.err, run.out)
    run = said(b"to stderr\n", function="say-error")
    check("standard error too", run.err.splitlines() == ["to stderr", "× 10  to stderr"], run.err)
    run = said(b"request @ at 2026-11-20T21:04:00.123Z\n")
    check("request ids and times do not count", len(run.err.splitlines()) == 2 and list(counted(run).values()) == [10], run.err)
    run = said(b"record #\n")
    check("other lines are different ones", run.err.splitlines() == [f"record {n}" for n in range(1, 11)], run.err)
    run = said(b"a\nb\na\n")
    check("lines between do not matter", run.err.splitlines() == ["a", "b", "× 20  a", "× 10  b"], run.err)
    run = said(b"no newline")
    check("a line without an end goes on", run.err == "no newline" * 10 + "\n", run.err)
    run = said(b"\n")
    check("an empty line", run.err.splitlines() == ["", "× 10  "], run.err)
    run = said(b"\xff\x00\xc3\n", records=ten[:1])
    check("bytes that are no text go through as they are", run.done.stderr == b"\xff\x00\xc3\n", run.done.stderr)


def long_ones():
    run = said(b"x" * 200000 + b"\n", records=ten[:1])
    check("a long line comes in pieces", [len(l) for l in run.err.splitlines() if l[0] == "x"] == [65536, 200000 - 3 * 65536] and counted(run) == {"x" * 512: 3}, [len(l) for l in run.err.splitlines()])
    many = "".join(f"line {n}\n" for n in range(3000)).encode()
    run = said(many, records=ten[:2])
    check("more lines than are told apart are all written", len([l for l in run.err.splitlines() if l.startswith("line")]) == 1024 + 2 * (3000 - 1024) and
          len(counted(run)) == 1024, len(run.err.splitlines()))
    run = said(b"y" * 99 + b"\n" + b"z" * 5_000_000 + b"\n", flags=("--log", "log.txt"))
    check("megabytes do not block it", run.status == 0 and (folder / "log.txt").stat().st_size == 10 * (5_000_101 + 76), (folder / "log.txt").stat().st_size)
    run = said("é".encode() * 5000 + b"\n")
    check("a count's line is cut between characters", counted(run) == {"é" * 256: 10}, list(counted(run))[:1])


def ends():
    for how in ("exit", "crash", "hang"):
        run = Run(folder, "--quiet", "--max-retries", "1", "--timeout", "1", function=f"last-words {how}", records=ten)
        check(f"{how}: the last words are heard", run.err.splitlines() == ["last words", "× 2  last words"], run.err)
    run = Run(folder, "--quiet", "--bootstrap", "echo to stdout; echo to stderr >&2; exit 7", records=ten)
    check("a function that never asks: its words come before the error", run.status == 2 and run.err.splitlines()[:2] == ["to stdout", "to stderr"] and "exit status 7" in run.err.splitlines()[2] and not run.out, run.err)


def files():
    run = said(b"line #\nagain\n", flags=("--log", "log.txt"))
    check("--log has every line", not run.err and (folder / "log.txt").read_text().splitlines() == [l for n in range(1, 11) for l in (f"line {n}", "again")], run.err)
    run = said(b"line\n", flags=("--log", "/nonexistent/log"))
    check("--log that cannot be written: said", run.status == 2 and "--log /nonexistent/log: cannot be written" in run.err, run.err)
    run = said(b"line\n", flags=("--log", "/dev/full"))
    check("--log without room: said", run.status == 1 and "--log /dev/full is incomplete" in run.err, run.err)


def rows():
    """A day of retries: the trace has ten of them a batch, and one line for the rest of the row."""
    for flags, lanes in (((), 1), (("--parallelization", "3", "--shards", "2"), 5)):
        run = Run(folder, "--quiet", *flags, function="error", records=ten)
        invocations = int(re.search(r"^invocations\s+(\d+)", run.out, re.M)[1])
        check("every invocation is in the trace", sum(1 + t.get("repeats", 0) for t in run.trace) == invocations > 1000 * lanes, (len(run.trace), invocations))
        by_lane = {}
        for t in run.trace:
            by_lane.setdefault((t["shard"], t["first"]), []).append(t)
        for of in by_lane.values():
            attempts = [t["attempt"] - t.get("repeats", 0) for t in of]
            check("ten, the row, the end", len(of) == 12 and attempts == list(range(1, 12)) + [of[-2]["attempt"] + 1] and
                  [t["decision"] for t in of] == ["retry"] * 11 + ["discard"] and [bool(t.get("repeats")) for t in of] == [False] * 10 + [True, False], of)
            check("the row's line is the last one's", of[-2]["time_ms"] > 80_000_000 and of[-2]["attempt"] > 1000 and len(of[-2]["ids"]) == of[-2]["records"], of[-2])
    run = Run(folder, "--quiet", "--max-retries", "30", function="fail-and-say id-@", records=ten)
    check("a request id in the answer does not end a row", [t.get("repeats", 0) for t in run.trace] == [0] * 10 + [19, 0], run.trace)
    run = Run(folder, "--quiet", "--max-retries", "30", function="fail-and-say call#", records=ten)
    check("another answer does", len(run.trace) == 31 and not any("repeats" in t for t in run.trace), len(run.trace))
    run = Run(folder, "--quiet", "--max-retries", "11", function="error", records=ten)
    check("a row of one is no row", [t["attempt"] for t in run.trace] == list(range(1, 13)) and not any("repeats" in t for t in run.trace), run.trace)


class Denied(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": "User: r is not authorized to perform: dynamodb:PutItem"}).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def broken_environment():
    """Access is denied for a day: thousands of deliveries of 40 records."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Denied)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "sluice.json").write_text(json.dumps({"routes": [{"name": "copy", "handler": "replicate", "to": "dynamodb:copy", "on_failure": "report"}], "report_batch_item_failures": True}))
    run = Run(folder, "--quiet", "in.json" if write_event(folder / "in.json", [record(n) for n in range(1, 41)]) is None else "",
              env={"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_REGION": "us-east-1"})
    server.shutdown()
    deliveries = sum(1 + t.get("repeats", 0) for t in run.trace)
    check("it was tried for a day", run.status == 1 and deliveries > 1000, deliveries)
    lines = run.err.splitlines()
    check("a few lines in the trace", len(run.trace) == 12, len(run.trace))
    check("a few lines, not thousands", len(lines) <= 10 and any(re.match(r"× [12],\d{3}  ERROR .*AccessDenied", l) for l in lines), lines[:20])
    check("and the records are counted once", re.search(rf"^failed batches\s+{deliveries}   with 40 distinct records$", run.out, re.M), run.out)


for test in (streams, long_ones, ends, files, rows, broken_environment):
    test()
finish()
