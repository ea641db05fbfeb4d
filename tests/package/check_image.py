#!/usr/bin/env python3
"""`make image`: the layout is read by skopeo and by hand, two builds are the same bytes, and the programs run from its files
alone, as its user."""
import gzip
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[-1500:]}")
    passed += 1


def run(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, timeout=600, **more)


def record(n):
    image = {"PK": {"S": f"k{n}"}, "n": {"N": str(n)}}
    return {"eventID": f"{n:032x}", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
            "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-11-14T00:04:06.388",
            "dynamodb": {"ApproximateCreationDateTime": 1795208640, "Keys": {"PK": image["PK"]}, "NewImage": image, "SequenceNumber": str(10**20 + n),
                         "SizeBytes": 10, "StreamViewType": "NEW_IMAGE"}}


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        root, installed = folder / "root", folder / "installed"
        done = run("make", "--no-print-directory", "-s", "install", f"BUILD={os.path.relpath(BUILD)}", f"DESTDIR={installed}", "PREFIX=/usr")
        check("it is installed", done.returncode == 0, done.stderr)
        for out in ("a.tar", "b.tar"):
            done = run("scripts/image.sh", str(installed), str(folder / out))
            check("it is built", done.returncode == 0, done.stdout + done.stderr)
        check("two builds are the same bytes", (folder / "a.tar").read_bytes() == (folder / "b.tar").read_bytes())

        done = run("skopeo", "copy", "-q", "--insecure-policy", f"oci-archive:{folder}/a.tar", f"dir:{folder}/copy")
        check("skopeo takes it", done.returncode == 0, done.stderr)
        done = run("skopeo", "inspect", "--config", f"oci-archive:{folder}/a.tar")
        config = json.loads(done.stdout)
        check("the user is not root", config["config"]["User"] == "65532:65532", config)
        check("it stops by SIGTERM", config["config"]["StopSignal"] == "SIGTERM" and config["config"]["Entrypoint"] == ["/usr/bin/sluice"], config)
        manifest = json.loads((folder / "copy/manifest.json").read_text())
        root.mkdir()
        for layer, diff in zip(manifest["layers"], config["rootfs"]["diff_ids"]):
            blob = (folder / "copy" / layer["digest"].removeprefix("sha256:")).read_bytes()
            check("a digest and a size", hashlib.sha256(blob).hexdigest() == layer["digest"][7:] and len(blob) == layer["size"], layer)
            check("a layer's diff_id", f"sha256:{hashlib.sha256(gzip.decompress(blob)).hexdigest()}" == diff, diff)
            with tarfile.open(fileobj=__import__("io").BytesIO(blob)) as tar:
                members = tar.getmembers()
                owners = {m.name: (m.uid, m.mode) for m in members}
                check("nothing is in a layer that should not be", all(m.isfile() or m.isdir() or m.issym() for m in members) and
                      not any(m.mode & 0o6000 or (m.mode & 0o002 and m.name != "tmp" and not m.issym()) for m in members), owners)
                check("root owns all but the data", {n for n, (uid, _) in owners.items() if uid} <= {"data"}, owners)
                tar.extractall(root)
        check("its parts have their licenses", (root / "usr/share/doc/libcurl4/copyright").exists() and "libcurl4 " in (root / "usr/share/doc/packages.txt").read_text())
        check("there is no shell", not any((root / p).exists() for p in ("usr/bin/sh", "usr/bin/bash", "usr/bin/busybox")))

        (root / "data/sluice.json").write_text(json.dumps({"on_failure": "report", "report_batch_item_failures": True, "routes": [
            {"name": "copy", "handler": "replicate", "to": "sqlite:/data/copy.db?table=t"}]}))
        (root / "data/in.json").write_text(json.dumps({"Records": [record(n) for n in range(7)]}))
        for place in ("dev", "proc"):
            (root / place).mkdir()
        (root / "dev/null").touch(mode=0o666)  # a container has a real one
        is_root = os.geteuid() == 0
        if is_root:
            subprocess.run(["chown", "-R", "65532:65532", root / "data"], check=True)
        inside = ["unshare", *([] if is_root else ["-r"]), "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root}/proc", "/usr/sbin/chroot",
                  *(["--userspec=65532:65532"] if is_root else []), str(root)]
        env = {"PATH": "/usr/bin:/usr/sbin:/bin:/sbin"}
        done = run(*inside, "/usr/bin/sluice", "--help", env=env)
        check("it runs", done.returncode == 0 and "tail" in done.stdout, done.stdout + done.stderr)
        done = run(*inside, "/usr/bin/sluice", "replay", "--config", "/data/sluice.json", "--log", "/data/log", "/data/in.json", env={**env, "TMPDIR": "/tmp"})
        check("its sandbox runs", done.returncode == 0 and "INSERT 7" in done.stdout, done.stdout + done.stderr)
    print(f"{passed} passed, 0 failed")


main()
