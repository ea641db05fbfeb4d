#!/usr/bin/env python3
"""`sluice replay` with functions that fail in their own ways, with inputs of every shape, and with bad ones."""
import base64
import gzip
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time

from harness import BUILD, FUNCTION_SH, WHOLE, Run, check, ended, finish, kills, record, until, work_folder, write_event

kills()
folder = work_folder()
ten = [record(n) for n in range(1, 11)]


def said(run, what):
    """The number in the summary's line that begins with `what`."""
    for line in run.out.splitlines():
        if line.startswith(what):
            return int(line[len(what):].split()[0])
    return 0


# ---- our own bootstrap ----

def configured(text, *flags, env=None):
    (folder / "sluice.json").write_text(text if isinstance(text, str) else json.dumps(text))
    return Run(folder, *flags, "in.json", env=env)


def route(**members):
    return {"routes": [{"name": "r", "handler": "archive", "to": "file:archived", "on_failure": "report", **members}]}


# ---- functions that fail ----

def error_type(run, i=0):
    return run.trace[i]["answer"]["errorType"]


def bad_functions():
    run = Run(folder, "--max-retries", "1", function="exit", records=ten)
    check("exit: Runtime.ExitError", error_type(run) == "Runtime.ExitError" and
          run.trace[0]["answer"]["errorMessage"].endswith("exit status 3"), run.trace)
    check("exit: two attempts, discarded", run.sizes() == [10, 10] and run.status == 1 and said(run, "processes died") == 2, run.out)
    run = Run(folder, "--max-retries", "0", function="crash", records=ten)
    check("crash: Runtime.ExitError", "signal: Segmentation fault" in run.trace[0]["answer"]["errorMessage"], run.trace)
    run = Run(folder, "--max-retries", "0", "--timeout", "1", function="hang", records=ten)
    check("hang: killed at its deadline", error_type(run) == "Sandbox.Timedout" and said(run, "timed out") == 1 and
          run.trace[0]["answer"]["errorMessage"] == "Task timed out after 1.00 seconds", run.trace)
    run = Run(folder, "--max-retries", "0", "--report-failures", function="answer '<html>'", records=ten)
    check("garbage: fails the batch where answers count", run.status == 1 and said(run, "bad answers") == 1 and
          said(run, "  not JSON") == 1 and run.trace[0]["answer"] == "<html>", run.out)
    run = Run(folder, function="answer '<html>'", records=ten)
    check("garbage: is success where they do not", run.status == 0 and said(run, "  not JSON") == 1, run.out)
    run = Run(folder, function="twice", records=ten)
    check("twice: refused, the first one counts", run.status == 0 and said(run, "answered twice") == 1, run.out)
    run = Run(folder, function="wrong-id", records=ten)
    check("wrong id: refused", run.status == 0 and said(run, "wrong ids") == 1, run.out)
    run = Run(folder, function="refetch", records=ten)
    check("no answer: the same event again", run.status == 0 and said(run, "not answered") == 1, run.out)
    run = Run(folder, "--max-retries", "0", function="too-large", records=ten)
    check("too large: a function error", error_type(run) == "Function.ResponseSizeTooLarge" and said(run, "too large") == 1, run.trace)
    run = Run(folder, "--batch-size", "2", function="then-exit", records=ten)
    check("an exit after the answer costs nothing", run.status == 0 and run.sizes() == [2] * 5, run.trace)
    run = Run(folder, function="exit-once once", records=ten)
    check("a fresh process gets the batch again", run.status == 0 and run.sizes() == [10, 10], run.trace)
    run = Run(folder, function="init-error", records=ten)
    check("init error: said, exit 2", run.status == 2 and "no configuration" in run.err and not run.trace, run.err)
    run = Run(folder, function="stillborn", records=ten)
    check("ends before it asks: said, exit 2", run.status == 2 and "exit status 7" in run.err, run.err)
    run = Run(folder, "--bootstrap", "/nonexistent/function", records=ten)
    check("no such command: said, exit 2", run.status == 2, run.err)


def what_was_given_up():
    """The summary tells good records that were given up with bad ones, and answers that nobody heard."""
    poison = "4,8"
    run = Run(folder, "--max-retries", "1", "--report-failures", function=f"name {poison}", records=ten)
    check("beside the poison: counted", run.status == 1 and said(run, "discarded") == 7 and said(run, "  beside others") == 6, run.out)
    run = Run(folder, "--max-retries", "1", "--report-failures", "--bisect", function=f"name {poison}", records=ten)
    check("both settings: the poison alone", said(run, "discarded") == 2 and not said(run, "  beside others") and
          [f["DDBStreamBatchInfo"]["startSequenceNumber"] for f in run.failures] == ["4", "8"], run.out)
    run = Run(folder, "--max-retries", "1", "--bisect", function=f"error-on {poison}", records=ten)
    check("bisect: the poison alone", said(run, "discarded") == 2 and not said(run, "  beside others"), run.out)
    run = Run(folder, "--batch-size", "2", function=f"name {poison}", records=ten)
    check("ignored answers: said", run.status == 0 and said(run, "handled") == 10 and said(run, "answers ignored") == 2 and
          "ReportBatchItemFailures is off" in run.out, run.out)
    run = Run(folder, function="answer null", records=ten)
    check("nothing went wrong: nothing is said", not said(run, "answers ignored") and not said(run, "  beside others"), run.out)


def ends_with_us():
    """A function that a shell started, and that hangs: it goes when the command is ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        write_event(folder / "in.json", ten)
        mark = f"{os.getpid()}-{number}"
        prefix = "exec " if number == signal.SIGKILL else "true; "  # killed outright, only the direct child can be ended
        process = subprocess.Popen([f"{BUILD}/sluice", "replay", "--bootstrap", f"{prefix}{FUNCTION_SH} hang {mark}", "in.json"], cwd=folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        alive = lambda: subprocess.run(["pgrep", "-f", f"hang {mark}$"], capture_output=True).stdout.split()
        until(alive)
        time.sleep(0.3)
        process.send_signal(number)
        ended(process, within=20)
        check(f"signal {number}: no process is left", until(lambda: not alive()) and process.returncode == -number, alive())


def leaves_nothing():
    """Ended at any moment: no folder in TMPDIR and no half of a report are left."""
    write_event(folder / "in.json", ten)
    (folder / "sluice.json").write_text(json.dumps(route()))
    mine = folder / "tmp"
    for turn, number in enumerate([signal.SIGINT, signal.SIGTERM] * 6):
        mine.mkdir(exist_ok=True)
        process = subprocess.Popen([f"{BUILD}/sluice", "replay", "--batch-size", "1", "--fault", "sink@2-400", "--report", "report.html", "in.json"],
                                   cwd=folder, env={**os.environ, "TMPDIR": str(mine)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.02 * turn)
        process.send_signal(number)
        err = ended(process, within=20)[1]
        left = [p.name for p in [*mine.iterdir(), *folder.glob("*.part")]]
        check(f"signal {number} after {20 * turn} ms: nothing is left", not left, (process.returncode, left, err))


# ---- faults by plan ----

def calls_of(run):
    """Calls of the one route's handler."""
    return int(run.out.splitlines()[-1].split()[6])


def faults():
    run = Run(folder, "--batch-size", "5", "--fault", "throttle@1,crash@2,lost@3,die@4,timeout@5", function="answer null", records=ten)
    kinds = [t["answer"]["errorType"] if t["answer"] else "ok" for t in run.trace]
    check("each fault once", kinds == ["TooManyRequestsException", "Runtime.ExitError", "ServiceException", "Runtime.ExitError",
                                       "Sandbox.Timedout", "ok", "ok"], kinds)
    check("a throttle costs no attempt", [t["attempt"] for t in run.trace] == [1, 1, 2, 3, 4, 5, 1], run.trace)
    run = configured(route(), "--batch-size", "5", "--fault", "sink@1-9")
    check("a sink's call that fails is retried", run.status == 0 and run.sizes() == [5, 5] and calls_of(run) > 2, run.out)
    shutil.rmtree(folder / "archived", ignore_errors=True)
    run = configured(route(), "--fault", "sink@*", "--timeout", "1", "--max-retries", "1")
    check("a sink that always fails leaves nothing behind", run.status == 1 and run.sizes() == [10, 10] and
          not list((folder / "archived").rglob("*.gz")) and error_type(run) != "Sandbox.Timedout", run.trace)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        run = Run(folder, "--fault", "connect@1", function=f"connect {port}", records=ten)
    check("a connection that is refused", "refused" in run.trace[0]["answer"]["errorMessage"] and run.status == 0 and
          run.trace[1]["decision"] == "advance", run.trace)
    run = Run(folder, "--fault", "earthquake@3", function="answer null", records=ten)
    check("an unknown fault is refused", run.status == 2 and "earthquake" in run.err, run.err)


def determinism():
    flags = ("--batch-size", "3", "--bisect", "--max-retries", "2", "--parallelization", "4", "--shards", "3",
             "--fault", "lost@30%,throttle@20%", "--seed", "11")
    many = [record(n, key=f"k{n % 17}") for n in range(1, 200)]
    runs = [Run(folder, *flags, function="error-on 50,77", records=many) for _ in range(3)]
    check("the same seed makes the same trace, byte for byte", len({r.trace_text for r in runs}) == 1)
    check("the same failure records", runs[0].failures == runs[1].failures == runs[2].failures)
    other = Run(folder, *flags[:-1], "12", function="error-on 50,77", records=many)
    check("another seed makes another trace", other.trace_text != runs[0].trace_text)
    check("only poison was given up, or what its retries ran out for",
          {"50", "77"} <= {f["DDBStreamBatchInfo"]["startSequenceNumber"] for f in runs[0].failures})
    last = {}
    for t in runs[0].trace:
        if t["decision"] == "advance":
            for i in map(int, t["ids"]):
                check("order per item", last.get(i % 17, 0) < i, f"{i} after {last.get(i % 17)}")
                last[i % 17] = i


def picture():
    run = Run(folder, "--bisect", "--max-retries", "1", "--report", "out.html", "--shards", "2", function="error-on 3,9",
              records=ten + [record(11, key="<b>&\"")])
    html = (folder / "out.html").read_text()
    rows = [row for shard in json.loads(html.split("id=data>")[1].split("</script>")[0])["shards"] for row in shard["rows"]]
    check("a line for each invocation", len(rows) == len(run.trace), html)
    for kind, verb in enumerate(("advance", "checkpoint", "retry", "bisect", "discard")):
        check(f"{verb}, as often as it was", sum(row[7] == kind for row in rows) == sum(t["decision"] == verb for t in run.trace), html)
    check("the table is in it", "records in" in html and not list(folder.glob("*.part")))
    run = Run(folder, "--report", "/nonexistent/out.html", function="answer null", records=ten)
    check("a report that cannot be written: said", run.status == 2 and "--report" in run.err, run.err)
    run = Run(folder, "--report", ".", function="answer null", records=ten)
    check("a report that is a folder: said before anything runs", run.status == 2 and not run.trace, run.err)
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    run = Run(folder, "--report", "pipe", function="answer null", records=ten)
    check("a report into a pipe goes into it", run.status == 0 and os.read(reader, 9) == b"<!doctype", run.err)
    check("and leaves it a pipe", (folder / "pipe").is_fifo())
    os.close(reader)


def full():
    """A device without room: what was asked for and is not there is a failure."""
    run = Run(folder, "--trace", "/dev/full", function="answer null", records=ten)
    check("a trace without room", run.status == 1 and "--trace /dev/full is incomplete: No space left" in run.err, run.err)
    run = Run(folder, "--report", "/dev/full", function="answer null", records=ten)
    check("a report without room", run.status == 1 and "--report /dev/full: cannot be written: No space left" in run.err, run.err)
    check("the device is still one", pathlib.Path("/dev/full").is_char_device())
    run = Run(folder, "--on-failure", "/dev/full", "--max-retries", "0", function="error-on 3", records=ten)
    check("failure records without room", run.status == 1 and "--on-failure /dev/full is incomplete: No space" in run.err, run.err)
    run = subprocess.run('"$SLUICE" replay --bootstrap "$FUNCTION" in.json >/dev/full', shell=True,
                         env={**os.environ, "SLUICE": f"{BUILD}/sluice", "FUNCTION": f"exec {FUNCTION_SH} answer null"}, cwd=folder, capture_output=True, timeout=600)
    check("a summary without room", run.returncode == 1 and b"standard output cannot be written" in run.stderr, run.stderr)


def side_by_side():
    run = Run(folder, "--parallelization", "4", "--batch-size", "100", "--max-retries", "0", function="meet 4", records=[record(n) for n in range(1, 100)])
    check("lanes really run side by side", len(run.trace) == 4 and run.status == 0, run.err)


def counts_side_by_side():
    """Several processes report what their routes did at the same time: nothing is lost of it."""
    n = 3000
    write_event(folder / "many.json", [record(i, key=f"k{i % 97}") for i in range(1, n + 1)])
    (folder / "many.sluice.json").write_text(json.dumps({"on_failure": "report", "routes": [{"name": "all", "handler": "archive", "to": "file:archived"}]}))
    flags = ("--config", "many.sluice.json", "--batch-size", "5", "--parallelization", "10", "--shards", "2", "--quiet", "many.json")
    run = Run(folder, *flags)
    row = next((line.split() for line in run.out.splitlines() if line.startswith("all ")), [])
    check("what many processes report is counted whole", run.status == 0 and row[2:4] == [str(n), str(n)] and row[6] == str(len(run.trace)),
          run.out + run.err)


# ---- what the function is given ----

def environment():
    run = Run(folder, "--report-failures", "--max-retries", "0", "--timeout", "7", function="environment", records=ten,
              env={"AWS_LAMBDA_MAX_CONCURRENCY": "9", "_X_AMZN_TRACE_ID": "x"})
    given = json.loads(run.trace[0]["answer"]["errorMessage"])
    check("Lambda's variables", given["AWS_LAMBDA_FUNCTION_VERSION"] == "$LATEST" and given["TZ"] == ":UTC" and
          given["AWS_LAMBDA_INITIALIZATION_TYPE"] == "on-demand" and given["AWS_LAMBDA_RUNTIME_API"].startswith("127.0.0.1:"), given)
    check("the function gets the mapping's setting", given["SLUICE_REPORT_BATCH_ITEM_FAILURES"] == "true", given)
    check("nothing that is not ours to promise", "AWS_LAMBDA_MAX_CONCURRENCY" not in given and "_X_AMZN_TRACE_ID" not in given, given)
    check("a real deadline", given["deadline_in_s"] in (6, 7), given)


def identity():
    """Who the function is comes from the stream's ARN, unless told, and all that names it agrees."""
    def given(records, *flags, status=1, **env):
        env = {"AWS_REGION": None, "AWS_DEFAULT_REGION": None, "AWS_LAMBDA_FUNCTION_NAME": None, "AWS_LAMBDA_LOG_GROUP_NAME": "x", "AWS_LAMBDA_LOG_STREAM_NAME": "x", **env}
        for name in [n for n, v in env.items() if v is None]:
            os.environ.pop(name, None)
        run = Run(folder, "--max-retries", "0", *flags, function="environment", records=records, env={k: v for k, v in env.items() if v})
        check("it ran", run.status == status, run.err)
        if status == 2:
            return run.err
        out = json.loads(run.trace[0]["answer"]["errorMessage"])
        out["failure"] = run.failures[0]["requestContext"]["functionArn"] if run.failures else out["arn"]
        name = out["AWS_LAMBDA_FUNCTION_NAME"]
        check("name, ARN, failure record, log group and trace agree", out["arn"].split(":")[6] == name and out["failure"] == out["arn"] and
              out["AWS_LAMBDA_LOG_GROUP_NAME"] == f"/aws/lambda/{name}" and out["AWS_REGION"] == out["AWS_DEFAULT_REGION"], out)
        check("the log stream is in Lambda's form", re.fullmatch(r"20\d\d/[01]\d/[0-3]\d/\[(\$LATEST|\d+)\][0-9a-f]{32}", out["AWS_LAMBDA_LOG_STREAM_NAME"]), out)
        check("the trace too", re.fullmatch(r"Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0", out["trace"]) and
              out["request"].replace("-", "")[:24] in out["trace"] and abs(int(out["trace"][7:15], 16) - time.time()) < 60, out)
        return out
    there = lambda arn: [{**record(1), "awsRegion": arn.split(":")[3], "eventSourceARN": arn}]
    for partition, region in (("aws", "eu-west-1"), ("aws-cn", "cn-north-1"), ("aws-us-gov", "us-gov-west-1")):
        out = given(there(f"arn:{partition}:dynamodb:{region}:210987654321:table/t/stream/2026-01-01T00:00:00.000"))
        check(f"{region}: of the stream", out["arn"] == f"arn:{partition}:lambda:{region}:210987654321:function:sluice" and out["AWS_REGION"] == region, out)
    stream = there("arn:aws:dynamodb:eu-west-1:210987654321:table/t/stream/2026-01-01T00:00:00.000")
    dump = [{k: v for k, v in stream[0].items() if k != "eventSourceARN"}]
    check("a dump: of its Region", given(dump)["arn"] == "arn:aws:lambda:eu-west-1:123456789012:function:sluice")
    check("told: a name", given(stream, "--function", "orders")["arn"] == "arn:aws:lambda:eu-west-1:210987654321:function:orders")
    check("told: by the environment", given(stream, AWS_LAMBDA_FUNCTION_NAME="bills")["arn"].endswith(":bills"))
    out = given(stream, "--function", "arn:aws:lambda:us-east-2:111122223333:function:orders:7", AWS_LAMBDA_FUNCTION_NAME="bills")
    check("told: an ARN with a version", out["arn"] == "arn:aws:lambda:us-east-2:111122223333:function:orders:7" and out["AWS_LAMBDA_FUNCTION_VERSION"] == "7" and
          "/[7]" in out["AWS_LAMBDA_LOG_STREAM_NAME"] and out["AWS_REGION"] == "us-east-2", out)
    out = given(stream, AWS_DEFAULT_REGION="us-west-2")
    check("told: the Region of its clients", out["AWS_REGION"] == "us-west-2" and ":eu-west-1:" in out["arn"], out)
    odd = given([{**record(1), "eventSourceARN": "x"}])
    check("an ARN that is none", odd["arn"] == "arn:aws:lambda:us-east-1:123456789012:function:sluice", odd)
    for bad in ("a b", "x" * 65, "arn:aws:s3:::bucket", "orders:7"):
        check(f"{bad[:9]}: refused", "neither the name of a function" in given(stream, "--function", bad, status=2))


def windows():
    run = Run(folder, "--tumbling", "60", "--batch-size", "4", function="sum", records=ten)
    check("a window's state goes along", [t["answer"]["state"]["n"] for t in run.trace] == [4, 8, 10, 10], run.trace)
    check("its last call comes with no records", run.sizes() == [4, 4, 2, 0] and run.trace[-1]["answer"]["state"]["final"], run.trace)


# ---- inputs ----

def ids(run):
    return [int(i) for t in run.trace for i in t["ids"]]


def kinesis():
    def wrapped(n):
        change = {k: v for k, v in record(n).items() if k not in ("eventSourceARN", "eventVersion")}
        change["dynamodb"] = {k: v for k, v in change["dynamodb"].items() if k not in ("SequenceNumber", "StreamViewType")}
        change["dynamodb"]["ApproximateCreationDateTime"] = 1573689197123
        change.update(recordFormat="application/json", tableName="t", userIdentity=None)
        data = base64.b64encode(json.dumps(change).encode()).decode()
        return {"kinesis": {"kinesisSchemaVersion": "1.0", "partitionKey": "A", "sequenceNumber": f"{n:056d}", "data": data, "approximateArrivalTimestamp": 1573689197.9},
                "eventSource": "aws:kinesis", "eventVersion": "1.0", "eventID": f"shardId-000000000000:{n:056d}", "eventName": "aws:kinesis:record",
                "awsRegion": "us-east-1", "eventSourceARN": "arn:aws:kinesis:us-east-1:123456789012:stream/s"}
    write_event(folder / "kinesis.json", [wrapped(n) for n in range(1, 4)])
    run = Run(folder, "--max-retries", "0", "kinesis.json", function="error")
    info = run.failures[0]["KinesisBatchInfo"]
    check("Kinesis: its own numbers, and milliseconds", info["startSequenceNumber"] == f"{1:056d}" and info["batchSize"] == 3 and
          info["approximateArrivalOfFirstRecord"] == "2019-11-13T23:53:17.123Z" and info["streamArn"].startswith("arn:aws:kinesis"), info)
    write_event(folder / "a.json", ten[:5])
    run = Run(folder, "a.json", "kinesis.json", function="error")
    check("two sources are refused", run.status == 2 and "kinesis.json" in run.err, run.err)


def shapes():
    def seen(text, *flags):
        run = Run(folder, *flags, "-", function="answer null", stdin=text)
        check("is taken", run.status == 0, run.err)
        return ids(run)
    check("standard input", seen(json.dumps({"Records": ten}).encode()) == list(range(1, 11)))
    check("gzip", seen(gzip.compress(json.dumps({"Records": ten}).encode())) == list(range(1, 11)))
    check("gzip of two members", seen(b"".join(gzip.compress(json.dumps(r).encode() + b"\n") for r in ten[:2])) == [1, 2])
    check("lines", seen("\n".join(map(json.dumps, ten)).encode()) == list(range(1, 11)))
    check("an array, as Pipes has it", seen(json.dumps(ten).encode()) == list(range(1, 11)))
    dump = [{k: v for k, v in r.items() if k != "eventSourceARN"} for r in ten]
    write_event(folder / "dump.json", dump)
    run = Run(folder, "--max-retries", "0", "dump.json", function="error")
    check("a GetRecords dump gets an ARN", run.status == 1 and run.failures[0]["DDBStreamBatchInfo"]["streamArn"].startswith("arn:"), run.err)
    dump[0]["userIdentity"] = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
    write_event(folder / "dump.json", dump)
    run = Run(folder, "--max-retries", "0", "dump.json", function="show")
    shown = json.loads(run.trace[0]["answer"]["errorMessage"])["Records"]
    check("and Lambda's names", shown[0]["userIdentity"] == {"principalId": "dynamodb.amazonaws.com", "type": "Service"} and
          shown[0]["eventSourceARN"] and shown[1:] == [{**d, "eventSourceARN": shown[0]["eventSourceARN"]} for d in dump[1:]], shown[0])
    kinesis()
    items = "\n".join(json.dumps({"Item": {"PK": {"S": f"a{n}"}, "x": {"N": str(n)}}}) for n in range(3)).encode()
    check("items, with --keys", seen(items, "--keys", "PK") == [1, 2, 3])
    run = Run(folder, "-", function="answer null", stdin=items)
    check("items, without: said", run.status == 2 and "--keys" in run.err, run.err)
    check("an empty event", seen(b'{"Records":[]}') == [])
    write_event(folder / "a.json", ten[:5])
    write_event(folder / "b.json", ten[5:])
    run = Run(folder, "a.json", "b.json", function="answer null")
    check("two files are one shard", run.sizes() == [10], run.trace)
    run = Run(folder, "--shard-per-file", "a.json", "b.json", function="answer null")
    check("or a shard each", run.sizes() == [5, 5] and len({t["shard"] for t in run.trace}) == 2, run.trace)


def bad_input():
    whole = json.dumps({"Records": ten[:2]}).encode()
    for cut in range(1, len(whole), 7):
        (folder / "cut.json").write_bytes(whole[:cut])
        run = Run(folder, "cut.json", function="answer null")
        check(f"cut at {cut}: exit 2, names file and byte", run.status == 2 and f"cut.json: invalid JSON at byte {cut}: " in run.err and
              run.err.count("\n") == 1 and not run.out and not run.trace, run.err)
    cases = {
        "missing.json": (None, "missing.json: cannot be opened: No such file"),
        "other.json": (b'{"Records":[{"eventSource":"aws:s3","s3":{}}]}', "other.json: "),
        "text.json": (b"hello", "text.json: "),
        "empty.json": (b"", "empty.json: "),
        "half.gz": (gzip.compress(whole)[:-9], "half.gz: bad gzip at byte "),
        "bad.gz": (b"\x1f\x8b\x08" + b"x" * 40, "bad.gz: bad gzip at byte "),
        "halfway.gz": (gzip.compress(whole[:100]), "halfway.gz: invalid JSON at byte 100: "),
    }
    for name, (content, text) in cases.items():
        if content is not None:
            (folder / name).write_bytes(content)
        run = Run(folder, name, function="answer null")
        check(f"{name}: exit 2, one line", run.status == 2 and text in run.err and run.err.count("\n") == 1, run.err)
    run = Run(folder, ".", function="answer null")
    check("a folder: exit 2, the line names it", run.status == 2 and "folder" in run.err, run.err)


def bad_usage():
    write_event(folder / "in.json", ten)
    cases = [
        (("--batch-size", "0"), "--batch-size 0"), (("--batch-size", "10001"), "--batch-size 10001"), (("--batch-size", "ten"), "whole number"),
        (("--window", "301"), "--window 301"), (("--parallelization", "11"), "--parallelization 11"),
        (("--max-retries", "-2"), "--max-retries -2"), (("--max-age", "59"), "--max-age: MaximumRecordAgeInSeconds"),
        (("--tumbling", "901"), "--tumbling 901"), (("--tumbling", "60", "--parallelization", "2"), "ParallelizationFactor"),
        (("--timeout", "0"), "--timeout"), (("--frobnicate",), "unknown flag"), (("--trace",), "needs a value"),
        (("--trace", "/nonexistent/t"), "--trace"), (("--bisect=yes",), "takes no value"),
    ]
    for flags, text in cases:
        run = Run(folder, "in.json", *flags, function="answer null")
        check(f"{flags}: exit 2", run.status == 2 and text in run.err and not run.out, run.err)
    run = Run(folder, function="answer null")
    check("no input: exit 2", run.status == 2 and "INPUT" in run.err, run.err)
    run = Run(folder, "--help")
    check("--help: exit 0, on standard output", run.status == 0 and "--batch-size" in run.out and not run.err)


# ---- configurations ----

def bad_configuration():
    write_event(folder / "in.json", ten)
    cases = [
        ('{"routes": [', "sluice.json"), (route(handler="frobnicate"), "frobnicate"),
        ({"routes": [{"name": "r", "handler": "archive", "on_failure": "report"}]}, "$.routes[0]"),
        (route(to="carrier-pigeon:x"), "$.routes[0].to"), (route(frobnicate=1), "$.routes[0].frobnicate"),
        (route(to="file:in.json/archive"), "in.json/archive"), ({"routes": []}, "$.routes"),
        (route(to="file:${NOT_SET}/x"), "NOT_SET"),
    ]
    for config, text in cases:
        before = set(os.listdir(folder))
        run = configured(config)
        check(f"{text}: exit 2, one line that names it", run.status == 2 and text in run.err.splitlines()[-1], run.err)
        check(f"{text}: nothing is left behind", set(os.listdir(folder)) - before <= {"sluice.json", "trace.jsonl", "failed.jsonl"})
    os.remove(folder / "sluice.json")
    run = Run(folder, "in.json")
    check("no configuration: exit 2", run.status == 2 and "--config" in run.err, run.err)


def own_bootstrap():
    run = configured(route(), "--batch-size", "3")
    check("nothing was parked", "parked   " in run.out and "parked          " not in run.out, run.out)
    check("routes are in the table", run.status == 0 and "file:archived" in run.out and run.sizes() == [3, 3, 3, 1], run.out + run.err)
    run = configured({**route(), "report_batch_item_failures": True}, "--batch-size", "3")
    check("the configuration says what the mapping is", run.trace[0]["answer"] == {"batchItemFailures": []}, run.trace)
    run = Run(folder, "--bootstrap", f"exec {shlex.quote(BUILD)}/bootstrap", "in.json",
              env={"SLUICE_CONFIG": str(folder / "sluice.json")})
    check("as another's command, too", run.status == 0, run.err)
    run = configured({"on_failure": ["jsonl:parked.jsonl", "file:parked"], "report_batch_item_failures": True,
                      "routes": [{"name": "strict", "handler": "notify", "to": "jsonl:mail.jsonl", "message": "{nothing}"},
                                 {"name": "fine", "handler": "notify", "to": "jsonl:mail.jsonl"}]}, "--batch-size", "5")
    check("where records were parked", run.out.endswith("\n\nparked                10   of strict, in jsonl:parked.jsonl, or if that was not possible file:parked\n"
                                                            "  reason              10   MissingAttribute: the record has no value for {nothing}\n"), run.out)
    for flag in [], ["--fail-on-parked"]:
        run = Run(folder, "--config", "sluice.json", *flag, "in.json")
        check(f"parked records, {flag}", run.status == len(flag), run.out + run.err)


def wrong_names():
    """One wrong name in the recorded stream's configuration: the route stops after a few, whatever the batches are."""
    config = json.loads(open("examples/orders/sluice.json", encoding="utf-8").read().replace("{total}", "{totl}"))
    del config["routes"][3]["missing"]
    lines = gzip.decompress(pathlib.Path("examples/capture/orders.jsonl.gz").read_bytes()).splitlines(keepends=True)
    capture = folder / "capture.jsonl"
    capture.write_bytes(b"".join(lines if WHOLE else lines[:1200]))
    for size in 10, 1000:
        out = folder / f"typo{size}"
        out.mkdir()
        (folder / "sluice.json").write_text(json.dumps(config))
        run = Run(folder, "--bisect", "--max-retries", "3", "--batch-size", str(size), str(capture), env={"OUT": str(out)})
        parked = len((out / "failed.jsonl").read_text().splitlines()) if (out / "failed.jsonl").exists() else 0
        check(f"batches of {size}: a few are parked, the rest stays", run.status == 1 and parked <= 15, f"{parked} {run.out}")
        check("what a person would say", "records were rejected with this code: probably a wrong name in a template: correct it, or set \"missing\"" in run.err, run.err[-500:])


def patience():
    """A target that is dead: whoever waits is told what for, long before the invocation's timeout."""
    write_event(folder / "in.json", ten)
    (folder / "dead.json").write_text(json.dumps({"on_failure": "report", "routes": [
        {"name": "dead", "handler": "notify", "to": "sqs://123456789012/q?region=us-east-1"}]}))
    replay = subprocess.Popen([f"{BUILD}/sluice", "replay", "--config", "dead.json", "--timeout", "600", "in.json"], cwd=folder, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env={**os.environ, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    line = next((x for x in replay.stderr if "of real time" in x), "nothing was said")
    replay.terminate()
    ended(replay)
    check("a line says what is waited for", "its timeout is 600 s (--timeout)" in line, line)


for test in (patience, bad_functions, what_was_given_up, ends_with_us, leaves_nothing, faults, determinism, side_by_side, counts_side_by_side, picture, full, environment, identity, windows, shapes, bad_input, bad_usage, bad_configuration, own_bootstrap, wrong_names):
    test()
finish()
