#!/usr/bin/env python3
"""Variables of a configuration: its own, those of SLUICE_VARIABLES, and secrets of Secrets Manager and the Parameter
Store, on moto. LONG=1: a secret is changed, and the receiver refuses the old one, in a sandbox and in this process."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import subprocess
import threading

from harness import BUILD, Run, check, ended, finish, record, until, work_folder
from servers import Servers

folder = work_folder()
servers = Servers("moto", *(["dynamodb"] if os.environ.get("LONG") else []))
KEYS = ["whsec_" + base64.b64encode(bytes([n] * 32)).decode() for n in range(3)]
asked = []


class Receiver(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.bodies, self.key, self.token, self.refused = [], KEYS[0], "first-token", 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body, server = self.rfile.read(int(self.headers["content-length"])), self.server
        signed = b".".join([self.headers["webhook-id"].encode(), self.headers["webhook-timestamp"].encode(), body])
        wanted = "v1," + base64.b64encode(hmac.digest(base64.b64decode(server.key[6:]), signed, hashlib.sha256)).decode()
        ok = wanted in self.headers["webhook-signature"].split() and self.headers["authorization"] == server.token
        server.bodies += [body.decode()] if ok else []
        server.refused += not ok
        self.send_response(200 if ok else 401)
        self.send_header("content-length", "0")
        self.end_headers()


class Counter(http.server.ThreadingHTTPServer):
    """Passes on to moto, and remembers what was asked of whom."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Passes)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Passes(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        target, scope = self.headers["x-amz-target"], self.headers["authorization"]
        asked.append((target, json.loads(body), scope.split("/")[2]))
        status, text = servers.request(servers.env["MOTO_ENDPOINT"], scope.split("/")[3], "POST", "/", body,
                                       {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"})
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def moto(service, operation, **body):
    prefix = {"secretsmanager": "secretsmanager.", "ssm": "AmazonSSM."}[service]
    return servers.call(servers.env["MOTO_ENDPOINT"], service, prefix + operation, body)


receiver, counter = Receiver(), Counter()
ADDRESS = f"http://127.0.0.1:{receiver.server_port}/in"
made = moto("secretsmanager", "CreateSecret", Name="orders/hook", SecretString=json.dumps({"signing": KEYS[0], "port": 8443, "list": []}))
moto("secretsmanager", "CreateSecret", Name="plain", SecretString="first-token")
moto("secretsmanager", "CreateSecret", Name="binary", SecretBinary=base64.b64encode(b"\x00\x01").decode())
moto("ssm", "PutParameter", Name="/orders/url", Value=ADDRESS, Type="SecureString")
moto("ssm", "PutParameter", Name="word", Value="from-ssm", Type="String")
ENV = {**servers.env, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{counter.server_port}", "BUILD": BUILD}
VARIABLES = {"URL": "${ssm:/orders/url}", "SIGNING": "${secretsmanager:orders/hook:signing}", "TOKEN": "${secretsmanager:plain}",
             "WORD": "${ssm:word}", "PLAIN": "plain {NewImage.n}"}
TO = "${URL}?team=7#secret=SIGNING&header_env.Authorization=TOKEN"
ROUTE = {"name": "hook", "handler": "notify", "to": TO, "message": "{PK} ${WORD} ${PLAIN}"}
SECRETS = (*KEYS, "first-token", "second-token", "from-ssm")


def run(variables, env=None, route=None, n=2):
    receiver.bodies.clear()
    asked.clear()
    (folder / "sluice.json").write_text(json.dumps({"variables": variables, "on_failure": "report", "report_batch_item_failures": True, "routes": [route or ROUTE]}))
    return Run(folder, records=[record(i) for i in range(1, n + 1)], env={**ENV, **(env or {})})


def hides(run):
    return not any(secret in text for secret in SECRETS for text in (run.out, run.err, run.trace_text))


def it_works():
    r = run(VARIABLES)
    check("signed and sent", r.status == 0 and sorted(receiver.bodies) == ["k1 from-ssm plain 1", "k2 from-ssm plain 2"], r.out + r.err + str(receiver.bodies))
    check("each secret is asked for once", sorted(body.get("SecretId") or body["Name"] for _, body, _ in asked) == ["/orders/url", "orders/hook", "plain", "word"], asked)
    check("parameters are decrypted", all(body["WithDecryption"] is True for target, body, _ in asked if target.startswith("AmazonSSM")), asked)
    check("nothing of them is printed", hides(r), r.out + r.err)
    r = run({**VARIABLES, "SIGNING": "${secretsmanager:" + made["ARN"] + ":signing}"})
    check("by ARN", r.status == 0 and len(receiver.bodies) == 2, r.out + r.err)
    r = run(VARIABLES, env={"SIGNING": KEYS[0], "TOKEN": "first-token", "URL": ADDRESS, "WORD": "here"})
    check("what the environment sets is not asked for", r.status == 0 and not asked and "k1 here plain 1" in receiver.bodies, r.out + r.err + str(asked))
    r = run({k: v for k, v in VARIABLES.items() if k not in ("PLAIN", "WORD")},
            env={"SLUICE_VARIABLES": json.dumps({"PLAIN": "given ${HOME_TOWN}", "WORD": "${ssm:word}", "URL": ADDRESS}), "HOME_TOWN": "Ulm"})
    check("SLUICE_VARIABLES counts before the file's", r.status == 0 and "k1 from-ssm given Ulm" in receiver.bodies and len(asked) == 3, r.out + r.err + str(asked))


def wrong_ones():
    arn = made["ARN"]
    for name, variables, words in (
            ("not there", {"TOKEN": "${secretsmanager:nowhere}"}, ("$.variables.TOKEN", "secretsmanager:nowhere", "ResourceNotFoundException")),
            ("no parameter", {"TOKEN": "${ssm:/nowhere}"}, ("$.variables.TOKEN", "ssm:/nowhere", "ParameterNotFound")),
            ("no key", {"SIGNING": "${secretsmanager:orders/hook:other}"}, ("$.variables.SIGNING", 'no member "other"')),
            ("no object", {"SIGNING": "${secretsmanager:plain:signing}"}, ("not a JSON object",)),
            ("a list", {"SIGNING": "${secretsmanager:orders/hook:list}"}, ("neither a text nor a whole number",)),
            ("binary", {"SIGNING": "${secretsmanager:binary}"}, ("is binary",)),
            ("no key's name", {"SIGNING": "${secretsmanager:orders/hook:}"}, ("the key after the last ':' is missing",)),
            ("no name", {"SIGNING": "${secretsmanager:}"}, ("is not the name of a secret",)),
            ("a bad name", {"SIGNING": "${ssm:a b}"}, ("is not the name of a parameter",)),
            ("another service's ARN", {"SIGNING": "${ssm:" + arn + "}"}, ("another service's",)),
            ("no ARN", {"SIGNING": "${secretsmanager:arn:aws:secretsmanager:us-east-1}"}, ("six parts",)),
            ("within a text", {"WORD": "a ${ssm:word}"}, ("$.variables.WORD", "whole value of a variable")),
            ("a number", {"WORD": 7}, ("$.variables.WORD: is not a text",)),
            ("of AWS", {"AWS_REGION": "eu-west-1"}, ("$.variables.AWS_REGION", "before the configuration")),
            ("not a name", {"A-B": "x"}, ("$.variables.A-B", "not the name of a variable")),
            ("not set", {"WORD": "${NOT_SET}"}, ("$.variables.WORD", "NOT_SET"))):
        r = run({**VARIABLES, **variables})
        check(f"{name}: {words[0]}", r.status != 0 and not receiver.bodies and all(word in r.err for word in words) and hides(r), r.out + r.err)
    for place, route in (("to", {"to": "${ssm:/orders/url}"}), ("to", {"to": ADDRESS + "#secret=${secretsmanager:orders/hook:signing}"}), ("message", {"message": "${secretsmanager:plain}"})):
        r = run(VARIABLES, route={**ROUTE, **route})
        check(f"a secret in {place}", r.status != 0 and not asked and f"$.routes[0].{place}" in r.err and '"variables"' in r.err, r.err)
    r = run(VARIABLES, route={**ROUTE, "message": "{${TOKEN}"})
    check("a value in an error is hidden", r.status != 0 and hides(r), r.err)
    for text in ("[]", "{", '{"WORD": 1}'):
        r = run(VARIABLES, env={"SLUICE_VARIABLES": text})
        check(f"SLUICE_VARIABLES={text}", r.status != 0 and "SLUICE_VARIABLES" in r.err, r.err)
    servers_down = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    r = run(VARIABLES, env=servers_down)
    check("nobody answers", r.status != 0 and not receiver.bodies and "secretsmanager:" in r.err or "ssm:" in r.err, r.err)


def looked_at_only():
    asked.clear()
    (folder / "sluice.json").write_text(json.dumps({"variables": VARIABLES, "on_failure": "report", "routes": [ROUTE]}))
    done = subprocess.run([f"{BUILD}/sluice", "check", "sluice.json"], cwd=folder, env={**os.environ, **ENV}, capture_output=True, text=True, timeout=600)
    text = done.stdout + done.stderr
    check("check asks for nothing, and names what the function reads", done.returncode == 0 and not asked and "variable-not-set" not in text and
          all(word in text for word in ("secretsmanager:GetSecretValue", "ssm:GetParameter", "secret:orders/hook-??????", "parameter/orders/url")), text)
    check("and no variable that the environment sets", "parameter/word" in text, text)
    done = subprocess.run([f"{BUILD}/sluice", "check", "sluice.json"], cwd=folder, env={**os.environ, **ENV, "WORD": "x"}, capture_output=True, text=True, timeout=600)
    check("which is not read", "parameter/word" not in done.stdout + done.stderr, done.stdout + done.stderr)


def changed(in_process):
    """After five minutes a refused login has the secrets read again."""
    table, name = servers.dynamodb, f"orders-{int(in_process)}"
    servers.create(name, stream=True)
    (folder / "sluice.json").write_text(json.dumps({"variables": VARIABLES, "on_failure": "report", "report_batch_item_failures": True, "routes": [ROUTE]}))
    receiver.bodies.clear()
    env = {**os.environ, **ENV}
    tail = subprocess.Popen([f"{BUILD}/sluice", "tail", "--table", name, "--config", "sluice.json", *(["--in-process"] if in_process else [])], cwd=folder, env=env,
                            stdout=subprocess.DEVNULL, stderr=open(folder / "tail.log", "wb"))
    try:
        def sent(n):
            until(lambda: len(receiver.bodies) >= n or tail.poll() is not None)
            return len(receiver.bodies) >= n
        table("PutItem", TableName=name, Item={"PK": {"S": "k1"}, "n": {"N": "1"}})
        check("sent with the first secret", sent(1), (folder / "tail.log").read_text())
        receiver.token = "second-token"
        moto("secretsmanager", "PutSecretValue", SecretId="plain", SecretString="second-token")
        table("PutItem", TableName=name, Item={"PK": {"S": "k2"}, "n": {"N": "2"}})
        check("refused at first", until(lambda: receiver.refused > 0) and len(receiver.bodies) == 1)
        check("sent with the second secret", sent(2), (folder / "tail.log").read_text())
        check("and never printed", not any(s in (folder / "tail.log").read_text() for s in SECRETS))
    finally:
        tail.terminate()
        ended(tail)
        receiver.token = "first-token"
        moto("secretsmanager", "PutSecretValue", SecretId="plain", SecretString="first-token")


it_works()
wrong_ones()
looked_at_only()
if os.environ.get("LONG"):
    for in_process in (True, False):
        changed(in_process)
finish()
