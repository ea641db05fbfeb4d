#!/usr/bin/env python3
"""`sluice redrive`: what was parked or discarded, mended and run again, from files and standard input."""
import gzip
import json
import subprocess

from harness import BUILD, FUNCTION_SH, Run, check, finish, record, work_folder, write_event

folder = work_folder()
CONFIG = {"on_failure": "jsonl:parked.jsonl", "report_batch_item_failures": True, "routes": [
    {"name": "say", "handler": "notify", "to": "jsonl:said.jsonl", "message": "{word}"},
    {"name": "all", "handler": "notify", "to": "jsonl:all.jsonl", "message": "{PK}"}]}
MENDED = {**CONFIG, "routes": [{**CONFIG["routes"][0], "message": "mended {PK}"}, CONFIG["routes"][1]]}


def configure(config):
    (folder / "sluice.json").write_text(json.dumps(config))


def redrive(*args, stdin=None):
    done = subprocess.run([f"{BUILD}/sluice", "redrive", *args], cwd=folder, input=stdin, capture_output=True, timeout=600)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    return done


def lines(name):
    path = folder / name
    found = path.read_text().splitlines() if path.exists() else []
    return found if name == "parked.jsonl" else [json.loads(l) for l in found]


def parked_records():
    configure(CONFIG)
    run = Run(folder, records=[record(n) for n in range(1, 4)])
    parked = lines("parked.jsonl")
    check("three are parked by one route", run.status == 0 and len(parked) == 3 and len(lines("all.jsonl")) == 3 and not lines("said.jsonl"), run.err)
    done = redrive("--dry-run", "parked.jsonl")
    check("--dry-run says it, and does nothing", done.returncode == 0 and done.out.count("listed  ") == 4 and done.out.count("route=say  code=MissingAttribute") == 3 and not lines("said.jsonl"), done.out)
    done = redrive("parked.jsonl")
    check("not mended: fails again, exit 1, and is not parked again", done.returncode == 1 and done.out.count("failed  ") >= 3 and "0 of 3 messages are done" in done.out and
          lines("parked.jsonl") == parked, done.out + done.err)
    configure(MENDED)
    (folder / "one.json").write_text(parked[0])
    done = redrive("one.json")
    check("mended: done", done.returncode == 0 and (lines("said.jsonl") == ["mended k1"]) and "can be deleted" in done.out, done.out + done.err + str(lines("said.jsonl")))
    check("only the route that parked it ran", len(lines("all.jsonl")) == 3)
    forms = {
        "an SQS message": {"Body": parked[1], "ReceiptHandle": "x"},
        "what receive-message printed": {"Messages": [{"Body": parked[1]}]},
        "an SQS event": {"Records": [{"body": parked[1], "eventSource": "aws:sqs"}]},
        "a notification": {"Type": "Notification", "Message": parked[1]},
        "a notification in a message": {"Messages": [{"Body": json.dumps({"Type": "Notification", "Message": parked[1]})}]},
        "an array": [json.loads(parked[1])],
    }
    for name, form in forms.items():
        before = len(lines("said.jsonl"))
        done = redrive("-", stdin=json.dumps(form, indent=1).encode())
        check(f"{name}: done", done.returncode == 0 and lines("said.jsonl")[before:] == ["mended k2"], done.out + done.err)
    configure({**MENDED, "routes": MENDED["routes"][1:]})
    done = redrive("one.json")
    check("a route that no longer exists: it fails, and the line names it", done.returncode == 1 and "code=NoRoute" in done.out and '"say"' in done.out, done.out)


def discarded_batches():
    configure(MENDED)
    write_event(folder / "in.json", [record(n) for n in range(11, 15)])
    run = subprocess.run([f"{BUILD}/sluice", "replay", "--bootstrap", f"exec {FUNCTION_SH} error-on 12", "--bisect", "--max-retries", "0",
                          "--on-failure", "bucket/", "in.json"], cwd=folder, capture_output=True, timeout=600)
    objects = [p for p in (folder / "bucket").rglob("*") if p.is_file()]
    check("the mapping's bucket has one object", run.returncode == 1 and len(objects) == 1, run.stderr)
    path = objects[0].relative_to(folder / "bucket")
    check("under AWS's key", path.parts[:2] == ("aws", "lambda") and len(path.parts) == 8 and path.parts[3].startswith("shardId-"), path)
    check("with the event as a string", json.loads(json.loads(objects[0].read_text())["payload"])["Records"][0]["dynamodb"]["SequenceNumber"] == "12")
    before = len(lines("all.jsonl"))
    done = redrive(str(objects[0]))
    check("its event goes through every route", done.returncode == 0 and lines("all.jsonl")[before:] == ["k12"] and lines("said.jsonl")[-1] == "mended k12", done.out + done.err)
    before = len(lines("all.jsonl"))
    done = redrive("in.json")
    check("an event itself, too", done.returncode == 0 and len(lines("all.jsonl")) == before + 4, done.err)


def bad_messages():
    for text, what in ((b"{}", "not a failure message"), (b'{"Body":"hello"}', "not JSON"), (b'{"sluiceParked":1}', "without its record"),
                       (b'{"sluiceParked":2,"record":{},"route":"say"}', "newer"), (b'{"DDBStreamBatchInfo":{}}', "without a stream"), (b'{"a"', "byte 4"),
                       (b'{"DDBStreamBatchInfo":{"shardId":"s","startSequenceNumber":"1","endSequenceNumber":"2","streamArn":"arn:aws:dynamodb:../x:1:t"}}', "without a stream"),
                       (b'{"Records":[]}', "is empty"), (b'[]', "is empty"),
                       # Nothing to handle is not the same as handled: it would be removed.
                       (b'{"sluiceParked":1,"route":"say","record":{"Records":[]}}', "no records"), (b'{"DDBStreamBatchInfo":{},"payload":"[]"}', "no records"),
                       (b'{"DDBStreamBatchInfo":{},"payload":{"Records":[]}}', "no records"), (b'{"KinesisBatchInfo":{},"payload":"{\\"Records\\":[]}"}', "no records"),
                       (b'{"sluiceParked":1,"record":{},"route":"say\\u0000x"}', "without its record"),
                       (b'{"KinesisBatchInfo":{"shardId":"s","startSequenceNumber":"1",'
                       b'"endSequenceNumber":"2","streamArn":"arn:aws:kinesis:r:1:stream/s"}}', "Kinesis stream")):
        done = redrive("-", stdin=text)
        line = done.out.splitlines()[0]
        check(f"{text}: reported, exit 4", done.returncode == 4 and line.startswith("unreadable  -:1  ") and "  code=" in line and what in line and not done.err, done.out + done.err)
    deep = b'{"x":1}'
    for _ in range(12):
        deep = json.dumps({"Message": deep.decode()}).encode()
    check("endless envelopes", redrive("-", stdin=deep).returncode == 4)
    done = redrive("-", stdin=b" \n")
    check("nothing at all", done.returncode == 0 and "there is no message" in done.out, done.out)
    for args, what in ((["nowhere.json"], "nowhere.json"), ([], "PLACE is missing"), (["--match", "color=red", "-"], "color=red"), (["--since", "noon", "-"], "noon"),
                       (["--limit", "0", "-"], "--limit"), (["--delete-done", "-"], "--delete-done"), (["--visibility", "10", "-"], "180 "),
                       (["ftp://x"], "ftp://x"), (["sqs://no/such/queue!"], "queue name"), (["--config", "none.json", "-"], "none.json"), (["--parallel", "11", "-"], "--parallel")):
        done = redrive(*args, stdin=b"")
        check(f"{args}: exit 2, one line", done.returncode == 2 and what in done.err and done.err.count("\n") == 1 and not done.out, done.err)


def texts_of_others():
    """A message decides nothing but what its record and route say; what is printed of it drives no terminal."""
    configure(MENDED)
    said = len(lines("said.jsonl"))
    rec = record(77, key="k\x1b[2J\u202e")
    text = json.dumps({"sluiceParked": 1, "route": "say", "code": "A\nB", "streamArn": "arn:aws:dynamodb:../../x:1:table/t", "record": rec})
    done = redrive("-", stdin=text.encode())
    check("a strange ARN is not used", done.returncode == 0 and len(lines("said.jsonl")) == said + 1, done.out + done.err)
    done = redrive("--dry-run", "-", stdin=text.encode())
    check("no control characters", "\x1b" not in done.out and "\u202e" not in done.out and "code=A?B" in done.out and done.out.count("\n") == 4, done.out)


def lines_of_a_file():
    configure(MENDED)
    good = lines("parked.jsonl")
    text = "\n".join([good[0], "{broken", "", good[1], '{"a":', '1}', good[2]]) + "\n"
    (folder / "mixed.jsonl").write_text(text)
    done = redrive("mixed.jsonl")
    ids = [l.split()[1] for l in done.out.splitlines() if l.startswith(("done  ", "unreadable  ")) and "mixed" in l]
    check("a broken line is skipped; one value may have several lines", ids == [f"mixed.jsonl:{n}" for n in (1, 2, 4, 5, 7)] and done.returncode == 4, done.out)
    (folder / "mixed.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    again = redrive("mixed.jsonl.gz")
    check("the same in gzip", again.out.count("done  ") == done.out.count("done  ") and again.returncode == 4, again.out)
    (folder / "long.jsonl").write_text("\n".join(good[0] for _ in range(3000)))
    done = redrive("--limit", "700", "long.jsonl")
    check("--limit: so many of the same record, each by itself", "700 of 700 messages are done" in done.out, done.out[-300:])


parked_records()
discarded_batches()
lines_of_a_file()
texts_of_others()
bad_messages()
finish()
