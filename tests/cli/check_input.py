#!/usr/bin/env python3
"""`sluice replay`: a bad line is named, what no shard would hold is said, AWS's limits on filters hold, and failure
records are not written over."""
import gzip
import json
import subprocess

from harness import BUILD, FUNCTION_SH, Run, check, finish, record, work_folder, write_event

folder = work_folder()
ten = [record(n) for n in range(1, 11)]


def bad_lines():
    """A file of one record a line names the line, whatever the scanner first stumbled on."""
    lines = [json.dumps(r) for r in ten]
    def said_of(text, name="lines.jsonl"):
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        run = Run(folder, name, function="answer null")
        check("exit 2, one line", run.status == 2 and run.err.count("\n") == 1 and not run.trace, run.err)
        return run.err
    bad = {"cut in a string": lambda l: l[:30], "cut before a value": lambda l: l[:l.index("{", 5)], "no brace at its end": lambda l: l[:-1], "text after it": lambda l: l + "x",
           "no JSON": lambda l: "# a remark", "not a record": lambda l: '{"a":1}', "a bad field": lambda l: l.replace('"INSERT"', '"UPSERT"'), "not an object": lambda l: "[]"}
    for what, spoil in bad.items():
        for at in (0, 1, 4, 9):
            for end, name in (("\n", "lines.jsonl"), ("\r\n", "lines.jsonl"), ("\n\n", "lines.gz")):
                if what == "not an object" and at == 0:
                    continue
                err = said_of(end.join([*lines[:at], spoil(lines[at]), *lines[at + 1:]]), name)
                number = at * end.count("\n") + 1
                # An event with a text after it, or an array, in the first line: not a file of lines.
                check(f"{what}: line {number}", f"{name}: line {number}: " in err, err)
    printed = json.dumps({"Records": ten}, indent=1).replace('"INSERT"', '"UPSERT"', 1)
    check("an event over many lines", "line 3: record 0: eventName" in said_of(printed, "printed.json"), said_of(printed, "printed.json"))
    items = "\n".join(json.dumps({"Item": {k: {"S": "x"}}}) for k in ("PK", "PK", "other"))
    run = Run(folder, "--keys", "PK", "-", function="answer null", stdin=items.encode())
    check("an item without its key", run.status == 2 and "-: line 3: record 2 is an item without keys" in run.err, run.err)


def order():
    """What no shard of a stream would hold is replayed, and said."""
    check("in order: nothing is said", not Run(folder, "--quiet", function="answer null", records=ten).err)
    run = Run(folder, "--quiet", function="answer null", records=[ten[0], ten[2], ten[1], *ten[3:], ten[9]])
    check("out of order", run.status == 0 and len(run.err.splitlines()) == 1 and
          "2 records are out of order. record 2 of in.json (SequenceNumber 2) does not come after record 1 of in.json (3)" in run.err, run.err)
    check("it is delivered as it came", run.trace[0]["ids"] == ["1", "3", "2", *map(str, range(4, 11)), "10"])
    write_event(folder / "a.json", ten[5:])
    write_event(folder / "b.json", ten[:5])
    run = Run(folder, "--quiet", "a.json", "b.json", function="answer null")
    check("inputs out of order", "1 record is out of order. record 0 of b.json (SequenceNumber 1) does not come after record 4 of a.json (10)" in run.err, run.err)
    check("a shard each: nothing is said", not Run(folder, "--quiet", "--shard-per-file", "a.json", "b.json", function="answer null").err)
    check("longer is later", not Run(folder, "--quiet", function="answer null", records=[record(9), record(10), record(100)]).err)
    other = [record(n, table="u") for n in range(11, 13)]
    write_event(folder / "b.json", other)
    run = Run(folder, "--quiet", "a.json", "b.json", function="answer null")
    check("two tables in one shard", run.status == 0 and len(run.err.splitlines()) == 1 and "two streams: arn:aws:dynamodb:us-east-1:123456789012:table/t/" in run.err and
          "table/u/" in run.err and "record 0 of b.json" in run.err, run.err)
    check("... not in one shard", not Run(folder, "--quiet", "--shard-per-file", "a.json", "b.json", function="answer null").err)


def filter_limits():
    one = ("--filter", '{"eventName":["INSERT"]}')
    fill = lambda n, text="x": '{"eventName":["INSERT","' + text * (n - 27) + '"]}'
    check("the pattern's length", len(fill(4096)) == 4096)
    check("five filters", not Run(folder, "--quiet", *one * 5, function="answer null", records=ten).err)
    run = Run(folder, "--quiet", *one * 6, function="answer null", records=ten)
    check("six: said", run.status == 0 and "6 filters: AWS takes 5 for a mapping, and up to 10" in run.err, run.err)
    run = Run(folder, *one * 11, function="answer null", records=ten)
    check("eleven: refused", run.status == 2 and "the number of filters is 11" in run.err, run.err)
    check("4,096 characters", Run(folder, "--filter", fill(4096), function="answer null", records=ten).status == 0)
    check("4,096 characters of two bytes", Run(folder, "--filter", fill(4096, "é"), function="answer null", records=ten).status == 0)
    run = Run(folder, "--filter", fill(4097), function="answer null", records=ten)
    check("4,097 characters: refused", run.status == 2 and "more than 4096 characters" in run.err, run.err)


def not_overwritten():
    def run(target, *flags):
        return subprocess.run([f"{BUILD}/sluice", "replay", "--quiet", "--max-retries", "0", "--on-failure", target, *flags, "--bootstrap", f"exec {FUNCTION_SH} error", "in.json"],
                              cwd=folder, capture_output=True, timeout=600)
    write_event(folder / "in.json", ten)
    kept = folder / "kept.jsonl"
    kept.write_text("precious\n")
    done = run("kept.jsonl")
    check("a file with records is kept", done.returncode == 2 and b"--on-failure kept.jsonl: has failure records already" in done.stderr and kept.read_text() == "precious\n", done.stderr)
    done = run("kept.jsonl", "--overwrite")
    check("--overwrite begins it anew", done.returncode == 1 and kept.read_text().count("\n") == 1 and "precious" not in kept.read_text(), done.stderr)
    kept.write_text("")
    check("an empty file is taken", run("kept.jsonl").returncode == 1 and "DDBStreamBatchInfo" in kept.read_text())
    check("a new folder is taken", run("bucket/").returncode == 1 and len([p for p in (folder / "bucket").rglob("*") if p.is_file()]) == 1)
    done = run("bucket/")
    check("a folder with objects is kept", done.returncode == 2 and b"name another folder" in done.stderr, done.stderr)
    check("--overwrite adds to it", run("bucket/", "--overwrite", "--seed", "3").returncode == 1 and len([p for p in (folder / "bucket").rglob("*") if p.is_file()]) == 2)


for test in (bad_lines, order, filter_limits, not_overwritten):
    test()
finish()
