#!/usr/bin/env python3
"""`sluice decode` piece by piece: the same lines whatever the form of the input and however it comes; bad records are left
out alone; inputs of other forms are named; broken inputs and outputs end it as they should."""
import base64
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import threading
import time

from harness import BUILD, check, finish, kills, work_folder

kills()
folder = work_folder(large=True)
SLUICE = f"{BUILD}/sluice"
SEED = int(os.environ.get("SEED", 7))
draw = random.Random(SEED)


def decode(*args, data=None, **options):
    done = subprocess.run([SLUICE, "decode", *map(str, args)], input=data, capture_output=True, cwd=folder, timeout=600, **options)
    return done.returncode, done.stdout, done.stderr.decode()


# ---- the same lines from every form ----

def value(depth=0):
    kind = draw.choice(["S", "N", "N", "B", "BOOL", "NULL", "SS", "NS"] + (["M", "L"] if depth < 3 else []))
    text = lambda: "".join(draw.choice(["a", " ", ", ", "\": \"", "é", "\\", "\n", "{", "}", "😀", "sluice", "0"]) for _ in range(draw.randrange(12)))
    number = lambda: draw.choice(["0", "-0", "1", "-12.50", "100", "0.001", "00120", "1e3", "-7E-2", "12345678901234567890.5", "0.10", "9" * 38, "1234567"])
    return {kind: {"S": text, "N": number, "B": lambda: base64.b64encode(text().encode()).decode(), "BOOL": lambda: draw.random() < 0.5, "NULL": lambda: True,
                   "SS": lambda: sorted({text() + str(i) for i in range(3)}), "NS": lambda: ["1", "2.50"],
                   "M": lambda: {f"k{i}é" if i % 3 == 2 else f"k{i}": value(depth + 1) for i in range(draw.randrange(4))},
                   "L": lambda: [value(depth + 1) for _ in range(draw.randrange(4))]}[kind]()}


def counted(v):
    """DynamoDB's size of a value, by its documentation."""
    (kind, x), = v.items()
    if kind == "S":
        return len(x.encode())
    if kind == "B":
        return len(base64.b64decode(x))
    if kind == "N":
        import decimal
        sign, digits, exponent = decimal.Decimal(x).as_tuple()
        kept = "".join(map(str, digits)).rstrip("0")
        exponent += len(digits) - len(kept)
        kept = kept.lstrip("0")
        if not kept:
            return 1
        first, last = exponent + len(kept) - 1, exponent
        return first // 2 - last // 2 + 2 + sign
    if kind in ("BOOL", "NULL"):
        return 1
    if kind in ("SS", "NS"):
        return sum(counted({kind[0]: one}) for one in x)
    return 3 + (sum(1 + counted(one) for one in x) if kind == "L" else sum(1 + len(n.encode()) + counted(one) for n, one in x.items()))


def size(image):
    return sum(len(n.encode()) + counted(v) for n, v in image.items())


def record(i, pad):
    keys = {"PK": {"S": f"p{i % 97}"}, "SK": {"N": str(i)}}
    images = {"NewImage": {**keys, "v": value(), "pad": {"S": "x" * pad}}}
    if i % 3:
        images["OldImage"] = {**keys, "w": value()}
    r = {"eventID": f"{i:032x}", "eventName": "MODIFY" if i % 3 else "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
         "dynamodb": {"ApproximateCreationDateTime": 1767265199 + i // 100, "Keys": keys, **images, "SequenceNumber": str(10**20 + i), "SizeBytes": 9,
                      "StreamViewType": "NEW_AND_OLD_IMAGES"},
         "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-01-01T00:00:00.000"}
    if i % 50 == 7:
        r["sluice"] = {"file": "earlier", "index": 3}
    return r, size(keys) + sum(map(size, images.values()))


def compact(x):
    return json.dumps(x, separators=(",", ":"), ensure_ascii=False)


def expected(name, records):
    lines = []
    for index, (r, computed) in enumerate(records):
        r = {k: v for k, v in r.items() if k != "sluice"}
        lines.append(compact({**r, "sluice": {"file": name, "index": index, "ttl": "user", "bytes": computed}}))
    return "".join(line + "\n" for line in lines).encode()


def by_pipe(data, block):
    """Through a pipe in blocks, which stalls now and then."""
    process = subprocess.Popen([SLUICE, "decode", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
    def feed():
        for at in range(0, len(data), block):
            process.stdin.write(data[at:at + block])
            if at // block % 50 == 3:
                process.stdin.flush()
                time.sleep(0.01)
        process.stdin.close()
    feeder = threading.Thread(target=feed)
    feeder.start()
    out = process.stdout.read()
    feeder.join()
    return process.wait(timeout=600), out


def forms():
    records = [record(i, draw.choice([0, 30, 3000, 60000])) for i in range(700)]  # some 10 MB: several pieces
    texts = [compact(r) for r, _ in records]
    lines = "\n".join(texts).encode() + b"\n"
    spaced = [json.dumps(r, ensure_ascii=False, indent=draw.choice([None, 1])) for r, _ in records]
    half = len(lines) // 2
    inputs = {
        "lines.jsonl": lines,
        "no-newline.jsonl": lines[:-1],
        "crlf.jsonl": lines.replace(b"}\n{", b"}\r\n\r\n{"),
        "spaced.jsonl": "\n\n".join(spaced).encode(),
        "bom.jsonl": b"\xEF\xBB\xBF" + lines,
        "event.json": ('{"Records":[' + ",".join(texts) + "]}").encode(),
        "spaced.json": ('{"Records" : [\n' + ",\n".join(spaced) + "]\n}").encode(),
        "array.json": ("[" + ",".join(texts) + "]").encode(),
        "lines.gz": gzip.compress(lines, 1),
        "members.gz": gzip.compress(lines[:half], 1) + gzip.compress(lines[half:half + 100], 1) + gzip.compress(b"") + gzip.compress(lines[half + 100:], 1) + b"\0" * 40,
        "event.json.gz": gzip.compress(('{"Records":[' + ",".join(texts) + "]}").encode(), 1),
    }
    for name, data in inputs.items():
        (folder / name).write_bytes(data)
        status, out, err = decode(name)
        check(f"{name}: as it came", status == 0 and not err and out == expected(name, records), (status, err, len(out)))
    for name in ("lines.jsonl", "event.json.gz", "members.gz"):
        status, out = by_pipe(inputs[name], draw.choice([1000, 4096, 70000, 1 << 20]))
        check(f"{name}: through a pipe", status == 0 and out == expected("-", records))
    status, out, err = decode("lines.gz", "array.json", "lines.jsonl")
    check("several inputs", status == 0 and out == b"".join(expected(n, records) for n in ("lines.gz", "array.json", "lines.jsonl")), (status, err))
    check("again", decode("-", data=decode("lines.jsonl")[1])[1] == expected("-", records))


# ---- bad records ----

def bad_records():
    good = [compact({k: v for k, v in record(i, 10)[0].items() if k != "sluice"}) for i in range(40)]
    bad = {"a remark": "# a remark", "no JSON": "{cut", "cut off": good[0][:60], "a bad field": good[0].replace('"INSERT"', '"UPSERT"'), "another object": '{"a":1}',
           "a number": "12", "pretty": json.dumps({"eventName": "UPSERT", "dynamodb": {"Keys": {"a": {"S": "x"}}}}, indent=2), "an empty array": "[]",
           "pretty, cut off": json.dumps(json.loads(good[0]), indent=2)[:-40], "NULs": "\0\0\0", "not UTF-8": "\udcc3("}
    for what, text in bad.items():
        for places in ({3}, {5, 6}, {38, 39}, {0}, set(range(10, 30))):
            if 0 in places and what in ("an empty array", "a number"):
                continue
            lines = [text if i in places else good[i] for i in range(40)]
            data = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
            status, out, err = decode("--keep-going", "-", data=data)
            got = [json.loads(line) for line in out.splitlines()]
            want = [json.loads(good[i]) for i in range(40) if i not in places]
            same = len(got) == len(want) and all({k: v for k, v in g.items() if k != "sluice"} == w for g, w in zip(got, want))
            check(f"{what}, {sorted(places)[:3]}: the others come", status == 2 and same, (status, len(got), len(want), err[:300]))
            named = [line for line in err.splitlines() if line.startswith("-: ") and " byte " in line or "(byte" in line]
            check(f"{what}, {sorted(places)[:3]}: each is named", len(named) == len(places), err[:600])
            if "pretty" not in what:
                check(f"{what}, {sorted(places)[:3]}: by its line", all(f"line {i + 1}: " in err for i in places), err[:600])
                check(f"{what}, {sorted(places)[:3]}: places hold", [g["sluice"]["index"] for g in got] == [i for i in range(40) if i not in places], err[:300])
            status, out, err = decode("-", data=data)
            check(f"{what}, {sorted(places)[:3]}: else it ends there", status == 2 and out.count(b"\n") == min(places) and err.count("\n") == 1, (status, err[:300]))


def many_bad():
    """As many bad lines as good ones cost no more than so many good ones; some MB, so that a quadratic cost would show."""
    good = compact(record(1, 200)[0])
    data = ("\n".join([good, "{bad"] * 20000) + "\n").encode()
    started = time.monotonic()
    status, out, err = decode("--keep-going", "-", data=data)
    check("many bad lines", status == 2 and out.count(b"\n") == 20000 and err.count("\n") == 20001 and time.monotonic() - started < 60, (status, out.count(b"\n"), err[-200:]))
    check("their number is told", "20000 bad records were left out" in err, err[-200:])


# ---- other forms ----

def other_forms():
    kinesis = {"Records": [{"SequenceNumber": "49", "ApproximateArrivalTimestamp": 1.5, "Data": base64.b64encode(compact(record(1, 1)[0]).encode()).decode(),
                            "PartitionKey": "p"}], "NextShardIterator": "AAA", "MillisBehindLatest": 0}
    lines = (compact(record(1, 1)[0]) + "\n") * 3
    forms = {
        "aws kinesis get-records": json.dumps(kinesis, indent=4).encode(), "kinesis get-records` prints": compact(kinesis).encode(),
        "CSV": b"PK,SK,total\nuser,1,3\nuser,2,4\n", "is CSV": b"PK\tSK\nuser\t1\n", "CSV, which": b'"PK";"SK"\r\n"a";"b"\r\n', "is CSV, which": b"PK,SK\n",
        "Ion text": b'$ion_1_0 {Item:{PK:"a",n:1.}}\n', "is Ion text (its names": b'{Item:{PK:"a",n:1.}}\n{Item:{PK:"b",n:1.}}\n', "binary Ion": b"\xE0\x01\x00\xEA\xEE\x9F\x81",
        "Parquet": b"PAR1\x15\x04\x15", "Avro": b"Obj\x01\x04", "zip archive": b"PK\x03\x04\x14\0", "zstd": b"\x28\xB5\x2F\xFD\x04", "xz": b"\xFD7zXZ\0\0", "bzip2": b"BZh91AY",
        "lz4": b"\x04\x22\x4D\x18d", "gzip twice": gzip.compress(gzip.compress(lines.encode())), "SQLite": b"SQLite format 3\0", "UTF-16: make": lines.encode("utf-16"),
        "-f UTF-16LE": lines.encode("utf-16-le"), "-f UTF-16BE": lines.encode("utf-16-be"), "tar archive": b"a.json" + b"\0" * 251 + b"ustar\0" + b"\0" * 300,
        "XML or HTML": b"<!DOCTYPE html>\n<html>", "an error page": b'<?xml version="1.0"?>\n<Error>', "a scan or a query": b'{"Items":[{"PK":{"S":"a"}}],"Count":1,"ScannedCount":1}',
        "manifest-summary.json": b'{"version":"2020-06-30","exportArn":"a","manifestFilesS3Key":"k"}', "manifest-files.json": b'{"itemCount":1,"md5Checksum":"x","etag":"y","dataFileS3Key":"k"}\n' * 2,
        "sluice redrive": b'{"requestContext":{},"version":"1.0","DDBStreamBatchInfo":{"shardId":"s"}}\n', "event of S3": b'{"Records":[{"eventSource":"aws:s3","s3":{"bucket":{}}}]}',
        "event of SQS": b'{"Records":[{"messageId":"1","receiptHandle":"h","body":"x","eventSource":"aws:sqs"}]}', "event of SNS": b'{"Records":[{"EventSource":"aws:sns","Sns":{}}]}',
        "is empty": b"", "holds no record": b" \n\n",
    }
    for what, data in forms.items():
        for flags in ((), ("--keep-going",)):
            status, out, err = decode(*flags, "-", data=data)
            check(f"named: {what} {flags}", status == 2 and not out and err.count("\n") == 1 and err.startswith("-: ") and what in err and "invalid JSON" not in err, (status, err[:300]))
    # What the message advises works.
    for r in kinesis["Records"]:
        status, out, err = decode("-", data=compact({"kinesis": {"sequenceNumber": r["SequenceNumber"], "data": r["Data"]}}).encode())
        check("the advice for get-records", status == 0 and out.count(b"\n") == 1, err)
    # What is a record, or nearly, is not taken for anything else.
    for text in (lines, lines[:100], "# a remark, with commas, two\n" + lines, "{}\n" + lines, "null, null\n"):
        status, out, err = decode("-", data=text.encode())
        check("no other form", status == 0 or "is CSV" not in err or text.startswith("null"), err)


# ---- what breaks ----

def broken_ends():
    lines = "".join(compact(record(i, 500)[0]) + "\n" for i in range(8000)).encode()
    (folder / "many.jsonl").write_bytes(lines)
    packed = gzip.compress(lines, 1)
    (folder / "cut.gz").write_bytes(packed[:len(packed) // 2])
    status, out, err = decode("cut.gz")
    check("gzip that is cut off: what is whole comes, and it is said", status == 2 and "cut.gz: bad gzip at byte " in err and out.count(b"\n") > 2000 and out.endswith(b"}}\n"), (status, err))
    spoiled = bytearray(packed)
    spoiled[len(packed) // 2] ^= 0xFF
    (folder / "spoiled.gz").write_bytes(spoiled)
    status, out, err = decode("--keep-going", "spoiled.gz", "many.jsonl")
    check("spoiled gzip: the next input comes", status == 2 and "spoiled.gz: bad gzip" in err and out.count(b'"file":"many.jsonl"') == 8000, (status, err[:300]))
    reader = subprocess.Popen(["head", "-n", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    process = subprocess.Popen([SLUICE, "decode", "many.jsonl"], stdout=reader.stdin, stderr=subprocess.PIPE, cwd=folder)
    reader.stdin.close()
    err = process.stderr.read()
    check("a reader that goes away: no noise", process.wait(timeout=600) == 1 and err == b"", err)
    reader.wait()
    os.mkfifo(folder / "fifo")
    threading.Thread(target=lambda: (folder / "fifo").write_bytes(lines), daemon=True).start()
    check("a FIFO", decode("fifo")[1].count(b"\n") == 8000)
    # (In the background of a shell without job control SIGINT is ignored, and that is inherited.)
    process = subprocess.Popen([SLUICE, "decode", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    process.stdin.write(lines[:3000000])
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    check("SIGINT while a pipe stalls", process.wait(timeout=600) == -signal.SIGINT and time.monotonic() - began < 30)
    process.stdin.close()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    with open(folder / "small", "wb") as small:
        done = subprocess.run([SLUICE, "decode", "many.jsonl"], stdout=small, stderr=subprocess.PIPE, cwd=folder, preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), limit()))
    check("no room for the output", done.returncode == 1 and b"standard output cannot be written" in done.stderr, done.stderr)


def endless():
    """Spaces, newlines or one line without end: refused or over, in little memory. (The first test, because a child counts with the
    memory that this process has when it begins.)"""
    def run(size, text=None, *flags):
        with open(folder / "sparse", "wb") as file:
            if text:
                file.write(text)
            file.truncate(size)
        process = subprocess.Popen([SLUICE, "decode", *flags, "sparse"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
        err = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        return os.waitstatus_to_exitcode(status), err, usage.ru_maxrss // 1024
    line = compact(record(1, 5)[0]).encode() + b"\n"
    status, err, mb = run(1 << 30, line)
    check("a GB of NULs after a record", status == 2 and mb < 64, (status, err[:200], mb))
    status, err, mb = run(1 << 29, line, "--keep-going")
    check("... left out", status == 2 and "1 bad record was left out" in err and mb < 64, (status, err[:300], mb))
    feed = subprocess.Popen(["sh", "-c", f"head -c 300000000 /dev/zero | tr '\\0' '\\n'"], stdout=subprocess.PIPE)
    process = subprocess.Popen([SLUICE, "decode", "-"], stdin=feed.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    err = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    check("300 MB of newlines", os.waitstatus_to_exitcode(status) in (0, 2) and err.count("\n") <= 1, err[:300])
    feed.kill()
    feed.wait()


try:
    for test in (endless, forms, bad_records, many_bad, other_forms, broken_ends):
        test()
finally:
    import shutil
    shutil.rmtree(folder)
finish()
