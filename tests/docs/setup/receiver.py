"""A receiver of webhooks that believes nothing: receiver.py URL-FILE LOG. It checks each signature of Standard Webhooks by hand, as
docs/SINKS.md says, and writes a line for each request; the last one is in request.json."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import sys

url_file, log = sys.argv[1:]
KEY = base64.b64decode(os.environ["HOOK_SECRET"].removeprefix("whsec_"))


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = f'{self.headers["webhook-id"]}.{self.headers["webhook-timestamp"]}.'.encode() + body
        expected = "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        is_right = any(hmac.compare_digest(expected, s) for s in self.headers["webhook-signature"].split())
        with open("request.json", "w", encoding="utf-8") as file:
            json.dump({"headers": dict(self.headers), "body": body.decode()}, file)
        with open(log, "ab") as file:
            file.write((b"signed " if is_right else b"NOT SIGNED ") + body + b"\n")
        self.send_response(204 if is_right else 401)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
with open(url_file + ".new", "w", encoding="utf-8") as file:
    file.write(f"http://127.0.0.1:{server.server_address[1]}/hook\n")
os.rename(url_file + ".new", url_file)
server.serve_forever()
