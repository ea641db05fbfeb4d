#!/usr/bin/env python3
"""`sluice erase` in S3 (moto): every version of every object is clean afterwards, also after kills; what Object Lock holds is said."""
import base64
import gzip
import hashlib
import http.client
import http.server
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import urllib.parse

from harness import BUILD, check, finish, kills, work_folder
from history_world import World, item, read
from servers import Servers

kills()
folder = work_folder()
servers = Servers("moto")
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **servers.env, "TMPDIR": os.environ["TMPDIR"]}
SECRET = "PERSON-5EC2E7"


def raw(method, path, body=None, headers=None):
    return servers.request(servers.env["MOTO_ENDPOINT"], "s3", method, path, body, {"x-amz-content-sha256": "UNSIGNED-PAYLOAD", **(headers or {})})


def versions(bucket):
    """[(key, version, is a marker)], of all pages."""
    out, more = [], ""
    while True:
        text = servers.s3("GET", f"/{bucket}?versions=&max-keys=200{more}")
        for kind, body in re.findall(r"<(Version|DeleteMarker)>(.*?)</\1>", text, re.S):
            out.append((re.search("<Key>(.*?)</Key>", body)[1], re.search("<VersionId>(.*?)</VersionId>", body)[1], kind == "DeleteMarker"))
        if "<IsTruncated>true" not in text:
            return out
        more = "&key-marker=" + re.search("<NextKeyMarker>(.*?)<", text)[1] + "&version-id-marker=" + re.search("<NextVersionIdMarker>(.*?)<", text)[1]


def holders(bucket, words):
    found = []
    for key, version, is_marker in versions(bucket):
        if is_marker:
            continue
        _, body = raw("GET", f"/{bucket}/{key}?versionId={version}")
        text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        found += [(key, version) for word in words if word.encode() in text]
    return found


def erase(*args, wait=True):
    process = subprocess.Popen([f"{BUILD}/sluice", "erase", "--config", "sluice.json", *args], cwd=folder, env=ENV, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    if wait:
        process.out, process.err = process.communicate(timeout=600)
    return process


def fill(bucket, seed, some, headers=None, changes=400):
    world = World(seed, changes=changes)
    for k, record in world.changes:
        for name in ("NewImage", "OldImage"):
            if k in some and name in record["dynamodb"]:
                record["dynamodb"][name] = {**record["dynamodb"][name], "email": {"S": f"{SECRET}-{k}"}}
    objects = world.objects()
    for name, body in objects.items():
        md5 = {"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()} if headers else {}
        status, text = raw("PUT", f"/{bucket}/records/{name}", body, {**(headers or {}), **md5})
        check("it is uploaded", status == 200, text)
    (folder / "people").write_text("".join(json.dumps(world.keys[k][1], ensure_ascii=False) + "\n" for k in some))
    (folder / "sluice.json").write_text(json.dumps({"report_batch_item_failures": True, "on_failure": f"s3://{bucket}/parked", "routes": [
        {"name": "record", "handler": "archive", "to": f"s3://{bucket}/records", "format": "record"}]}))
    return world, objects


def others(bucket, world, some):
    """The newest versions hold every change of everybody else, as it was."""
    own = {item(world.keys[k][0]) for k in some}
    objects = {}
    text, after = "", ""
    while True:
        text = servers.s3("GET", f"/{bucket}?list-type=2&prefix=records/orders/{after}")
        for key in re.findall("<Key>(.*?)</Key>", text):
            objects[key] = raw("GET", f"/{bucket}/{key}")[1]
        if "<IsTruncated>true" not in text:
            break
        after = "&start-after=" + re.findall("<Key>(.*?)</Key>", text)[-1]
    have = {r["eventID"]: r for r in read(objects)}
    for _, record in world.changes:
        r = have.get(record["eventID"])
        check("every change is there", r is not None, record["eventID"])
        is_own = item(record["dynamodb"]["Keys"]) in own
        check("as it was, or erased", ("sluice_erased" in r) if is_own else r == record, r)


def with_versions():
    bucket, some = "versioned", (0, 1, 2)
    servers.s3("PUT", f"/{bucket}")
    servers.s3("PUT", f"/{bucket}?versioning=", b'<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')
    world, objects = fill(bucket, 61, some, changes=700)
    # What was there once: another version of an object, an object that was deleted, a parked copy that was redriven.
    old = sorted(objects)[0]
    theirs = gzip.compress(json.dumps(next(r for k, r in world.changes if k == 0 and "NewImage" in r["dynamodb"])).encode())
    raw("PUT", f"/{bucket}/records/{old}", theirs)
    raw("PUT", f"/{bucket}/records/{old}", objects[old])
    raw("PUT", f"/{bucket}/records/orders/gone.jsonl.gz", theirs)
    raw("DELETE", f"/{bucket}/records/orders/gone.jsonl.gz")
    parked = json.dumps({"record": next(r for k, r in world.changes if k == 1)}).encode()
    raw("PUT", f"/{bucket}/parked/a.json", parked)
    raw("DELETE", f"/{bucket}/parked/a.json")
    raw("PUT", f"/{bucket}/parked/b.json", parked)
    held = holders(bucket, [SECRET])
    plan = erase("--plan", "--keys", "people")
    check("the plan counts versions", plan.returncode == 3 and re.search("and [23] older versions: would be erased", plan.out) and
          "1 record in 1 of 1 object, and 1 older version" in plan.out, plan.out + plan.err)
    check("and touches nothing", holders(bucket, [SECRET]) == held)
    ended, rng = 0, random.Random(2)
    for _ in range(8):
        process = erase("--keys", "people", wait=False)
        time.sleep(rng.uniform(0.05, 1.5))
        if process.poll() is None:
            process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
            ended += 1
        process.communicate()
    done = erase("--keys", "people", "--report", "report.json")
    check(f"after {ended} ends it is done", done.returncode == 3 and done.out.count("to do:") == 1 and done.out.count("0 still hold something") == 2, done.out + done.err)
    check("no version holds anything of them", holders(bucket, [SECRET]) == [] and SECRET not in (folder / "report.json").read_text(), holders(bucket, [SECRET])[:3])
    others(bucket, world, some)
    status, _ = raw("HEAD", f"/{bucket}/records/{old}")
    check("rewritten objects say so", status == 200)
    index = [v for v in versions(bucket) if "/_sluice/index/" in v[0]]
    check("one index is left, without older versions", len(index) == 1, index)


def locked():
    bucket, some = "locked", (0, 1)
    raw("PUT", f"/{bucket}", None, {"x-amz-bucket-object-lock-enabled": "true"})
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    world, _ = fill(bucket, 62, some, {"x-amz-object-lock-mode": "COMPLIANCE", "x-amz-object-lock-retain-until-date": until}, changes=60)
    done = erase("--keys", "people")
    check("what the lock holds is said", done.returncode == 3 and "may not be removed" in done.out and "Object Lock" in done.out, done.out + done.err)
    others(bucket, world, some)


def without_versions():
    bucket, some = "plain", (3, 4)
    servers.s3("PUT", f"/{bucket}")
    world, _ = fill(bucket, 63, some)
    done = erase("--keys", "people")
    check("a bucket without versions", done.returncode == 3 and "0 still hold something" in done.out and not holders(bucket, [SECRET]), done.out + done.err)
    others(bucket, world, some)


class Killer(http.server.ThreadingHTTPServer):
    """Between sluice and moto: at the request number `at` the process dies, before moto has it or after."""
    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def serve(self):
            server = self.server
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with server.lock:
                server.n += 1
                dies = server.n == server.at
            if dies and server.before:
                return server.kill(self)
            connection = http.client.HTTPConnection(server.moto, timeout=600)
            connection.request(self.command, self.path, body, {k: v for k, v in self.headers.items() if k.lower() not in ("connection",)})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            if dies:
                return server.kill(self)
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_DELETE = do_POST = do_HEAD = serve

        def log_message(self, *_):
            pass

    def handle_error(self, *_):  # the dead do not listen
        pass

    def kill(self, handler):
        self.victim.send_signal(signal.SIGKILL)
        self.victim.wait()
        handler.close_connection = True


def killed_at_every_request():
    bucket, some = "killed", (0, 1)
    servers.s3("PUT", f"/{bucket}")
    servers.s3("PUT", f"/{bucket}?versioning=", b'<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')
    moto = urllib.parse.urlsplit(servers.env["MOTO_ENDPOINT"]).netloc
    proxy = Killer(("127.0.0.1", 0), Killer.Handler)
    proxy.lock, proxy.moto = threading.Lock(), moto
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    through = {name: value.replace(moto, f"127.0.0.1:{proxy.server_port}") for name, value in ENV.items()}
    at, ends = 0, 0
    while at == 0 or ends == at:
        at += 1
        for version in versions(bucket):
            raw("DELETE", f"/{bucket}/{version[0]}?versionId={version[1]}")
        world, _ = fill(bucket, 64, some, changes=16)
        proxy.n, proxy.at, proxy.before = 0, at, at % 2 == 0
        proxy.victim = subprocess.Popen([f"{BUILD}/sluice", "erase", "--config", "sluice.json", "--keys", "people"], cwd=folder, env=through,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        proxy.victim.wait(timeout=600)
        ends += proxy.victim.returncode == -signal.SIGKILL
        done = erase("--keys", "people")
        check(f"killed at request {at}, then it is done", done.returncode == 3 and done.out.count("to do:") == 1 and done.out.count("0 still hold something") == 2,
              done.out + done.err)
        check("nothing is left, in any version", holders(bucket, [SECRET]) == [], at)
        others(bucket, world, some)
    check("there were requests enough", ends > 25, ends)
    proxy.shutdown()


with_versions()
killed_at_every_request()
locked()
without_versions()
finish()
