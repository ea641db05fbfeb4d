#!/usr/bin/env python3
"""Crash containment through `sluice replay`: a plugin that dies on single records takes nothing else with it, and what
looks like a death but is not one rejects nothing."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.abspath("tests/cli"))
from harness import BUILD, check, finish, record, write_event  # noqa: E402

# Writes a line for each record, in slices of 50; what `on` names happens at the records of `at`.
PLUGIN = r"""
#include "handlers/handler.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fragile { const struct sl_host *host; struct sl_queue_port *queue; struct sl_span on, at; };

static const struct sl_option options[] = {
    {.name = "to", .type = SL_OPTION_QUEUE, .flags = SL_OPTION_REQUIRED, .help = "lines"},
    {.name = "on", .type = SL_OPTION_ENUM, .values = "segv|abort|kill|exit|once|pair", .fallback = "segv", .help = "what"},
    {.name = "at", .type = SL_OPTION_TEXT, .help = "sequence numbers, a comma around each"},
    {.type = SL_OPTION_END},
};

static enum sl_status fragile_open(const struct sl_host *host, struct sl_route *route, void **self, struct sl_error *error)
{
    struct fragile *f = host->alloc(host->route_arena(route), sizeof(*f));
    (void)error;
    *f = (struct fragile){host, host->option_queue(route, "to"), host->option_text(route, "on"), host->option_text(route, "at")};
    *self = f;
    return SL_OK;
}

static void happen(const struct fragile *f, size_t n)
{
    if (strcmp(f->on.ptr, "segv") == 0 || (strcmp(f->on.ptr, "pair") == 0 && n > 1))
        raise(SIGSEGV);
    if (strcmp(f->on.ptr, "abort") == 0)
        abort();
    if (strcmp(f->on.ptr, "kill") == 0 && access("killed", F_OK) != 0) {
        fclose(fopen("killed", "w"));
        kill(getpid(), SIGKILL); /* as from outside: once */
    }
    if (strcmp(f->on.ptr, "once") == 0 && access("died", F_OK) != 0) {
        fclose(fopen("died", "w"));
        raise(SIGSEGV);
    }
    if (strcmp(f->on.ptr, "exit") == 0 && access("left", F_OK) != 0) {
        fclose(fopen("left", "w"));
        exit(0);
    }
}

static enum sl_status fragile_handle(void *self, struct sl_slice *slice, struct sl_error *error)
{
    const struct fragile *f = self;
    (void)error;
    for (size_t i = 0; i < slice->n; i++) {
        struct sl_span id = f->host->record_text(slice->records[i], SL_FIELD_SEQUENCE_NUMBER);
        char number[64];
        snprintf(number, sizeof(number), ",%.*s,", (int)id.len, id.ptr);
        if (f->at.ptr && strstr(f->at.ptr, number))
            happen(f, slice->n);
        struct sl_message message = {.body = id};
        struct sl_result result = {.status = SL_OK};
        struct sl_call call = {slice->arena, slice->deadline_ms};
        f->queue->apply(f->queue, &message, 1, &result, &call);
        if (result.status != SL_OK)
            return result.status;
    }
    return SL_OK;
}

SL_EXPORT const struct sl_handler SL_HANDLER = {SL_HANDLER_ABI, "fragile", .max_records = 50, .options = options,
                                                .open = fragile_open, .handle = fragile_handle};
"""


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def replay(folder, on, at, n, on_failure="jsonl:parked.jsonl", *args):
    config = {"report_batch_item_failures": True, "on_failure": on_failure,
              "routes": [{"name": "r", "handler": "fragile", "to": "jsonl:out.jsonl", "on": on,
                          "at": "".join(f",{k}" for k in at) + ","}]}
    folder.mkdir()
    (folder / "tmp").mkdir()
    (folder / "sluice.json").write_text(json.dumps(config))
    write_event(folder / "in.json", [record(1000 + k) for k in range(n)])
    done = subprocess.run([f"{BUILD}/sluice", "replay", "--batch-size", "1000", "--report-failures", "--bisect",
                           "--on-failure", "given-up.jsonl", *args, "in.json"], cwd=folder, capture_output=True, text=True,
                          timeout=600, env={**os.environ, "SLUICE_HANDLER_PATH": str(folder.parent / "plugins"),
                                            "TMPDIR": str(folder / "tmp")})
    out = {int(json.loads(line)) for line in lines(folder / "out.jsonl")}
    parked = [json.loads(line) for line in lines(folder / "parked.jsonl")]
    given_up = [json.loads(line) for line in lines(folder / "given-up.jsonl")]
    return done, out, parked, given_up


def everything(n, but=()):
    return {1000 + k for k in range(n)} - set(but)


def main():
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        (top / "plugins").mkdir()
        (top / "fragile.c").write_text(PLUGIN)
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", f"-I{os.getcwd()}", "-fPIC", "-shared",
                        "-fvisibility=hidden", "-o", top / "plugins" / "fragile.so", top / "fragile.c"], check=True)

        for on, n in (("segv", 1000), ("abort", 120)):
            done, out, parked, given_up = replay(top / on, on, [1080], n)
            detail = f"{done.stdout}{done.stderr}{len(out)} {parked}"
            check(f"{on}: all but one of {n} are applied", out == everything(n, [1080]), detail)
            check(f"{on}: exactly that record is parked",
                  [p["record"]["dynamodb"]["SequenceNumber"] for p in parked] == ["1080"], detail)
            check(f"{on}: its error names the signal", parked[0]["code"] == "HandlerCrashed"
                  and ("SIGSEGV" if on == "segv" else "SIGABRT") in parked[0]["message"], detail)
            check(f"{on}: nothing is given up", not given_up, detail)
            check(f"{on}: the folder is left clean", not list((top / on / "tmp").glob("sluice-held-*")), detail)

        done, out, parked, _ = replay(top / "several", "segv", [1000, 1001, 1049, 1119], 120)
        check("several: all others are applied", out == everything(120, [1000, 1001, 1049, 1119]), done.stderr)
        check("several: each is parked once",
              [p["record"]["dynamodb"]["SequenceNumber"] for p in parked] == ["1000", "1001", "1049", "1119"], parked)

        done, out, parked, given_up = replay(top / "report", "segv", [1030], 100, "report", "--max-retries", "3")
        check("report: exactly that record is given up", [g["DDBStreamBatchInfo"]["startSequenceNumber"] for g in given_up] == ["1030"]
              and given_up[0]["DDBStreamBatchInfo"]["batchSize"] == 1, f"{given_up} {done.stderr}")
        check("report: all others are applied", out == everything(100, [1030]), done.stderr)

        for on in ("kill", "once", "exit", "pair"):
            done, out, parked, given_up = replay(top / on, on, [1080], 120)
            detail = f"{done.stdout}{done.stderr}{parked}{given_up}"
            check(f"{on}: nothing is rejected", not parked and not given_up, detail)
            check(f"{on}: everything is applied", out == everything(120), detail)
    finish()


main()
