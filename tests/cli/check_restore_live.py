#!/usr/bin/env python3
"""`sluice backfill --until` from S3 (moto) into DynamoDB Local: an archive and the export that it continues, with kills."""
import json
import os
import pathlib
import random
import signal
import subprocess

from exports import write_export
from harness import BUILD, check, finish, kills, work_folder
from servers import Servers
from restore_world import T0, history, normal, state_at, text_of, wanted, write_archive

kills()

folder = work_folder()
servers = Servers("dynamodb", "moto")
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.env}


def upload_all(root, prefix):
    for path in sorted(pathlib.Path(root).rglob("*")):
        if path.is_file():
            servers.s3("PUT", f"/restores/{prefix}/{path.relative_to(root)}", path.read_bytes())
    return f"s3://restores/{prefix}/"


def create(name):
    servers.create(name, [("PK", "S"), ("SK", "N")])
    (folder / "restore.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": "report", "routes": [
        {"name": "restored", "handler": "replicate", "to": f"dynamodb://{name}", "guard": "none"}]}))


def scan(table):
    return {item["PK"]["S"]: normal(item) for item in servers.scan(table)}


def restore(until, *args):
    return subprocess.Popen([f"{BUILD}/sluice", "backfill", "--config", "restore.json", "--until", text_of(until), "--keys", "PK,SK",
                             "--temp", str(folder / "temp"), *args], cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def from_s3(seed, until, kills):
    rng = random.Random(seed)
    changes = history(seed, changes=6000, items=3000)
    at = T0 + 500
    base = list(state_at(changes, at).values())
    export = write_export(folder / f"base{seed}", [base[i::4] for i in range(4)], text_of(at).replace("Z", ".000Z"))
    place = upload_all(folder / f"base{seed}", f"exports{seed}") + str(export.relative_to(folder / f"base{seed}"))
    archive = upload_all(write_archive(folder / f"archive{seed}", [c for c in changes if c[0] >= at - 20], rng), f"archive{seed}")
    create(f"restored{seed}")
    args = ("--archive", archive, "--export", place, "--checkpoint", "cp")
    (folder / "cp").unlink(missing_ok=True)
    ended = 0
    while True:
        process = restore(until, *args, *(("--write-units", "1500") if ended < kills else ()))
        try:
            out, err = process.communicate(timeout=rng.uniform(0.3, 2.5) if ended < kills else 120)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
            process.communicate(timeout=600)
            ended += 1
    check(f"history {seed}: exit status after {ended} kills", process.returncode == 0, err)
    have, want = scan(f"restored{seed}"), wanted(state_at(changes, until))
    check(f"history {seed}: the table is as it was", have == want,
          f"{len(have)} items for {len(want)}; {[k for k in have.keys() | want.keys() if have.get(k) != want.get(k)][:5]}; {err}")
    return args


servers.s3("PUT", "/restores")
args = from_s3(1, T0 + 1100, 0)
process = restore(T0 + 1200, *args[:4])
_, err = process.communicate(timeout=600)
check("the same table again, to another moment: refused", process.returncode == 2 and "not empty" in err, err)
from_s3(2, T0 + 501, 4)
from_s3(3, T0 + 1400, 6)
finish()
