"""A server that computes each request's signature with botocore and compares; see check_signatures.sh."""
import http.server
import os
import re
import subprocess
import sys
import threading
import urllib.parse

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+of=tests"
ANSWERS = {
    "SendMessageBatch": '{"Successful":[{"Id":"0","MessageId":"m"}]}',
    "PutEvents": '{"Entries":[{"EventId":"e"}]}',
    "PutRecords": '{"Records":[{"SequenceNumber":"1"}]}',
    "PutRecordBatch": '{"RequestResponses":[{"RecordId":"r"}]}',
    "PublishBatch": "<PublishBatchResponse><PublishBatchResult><Successful><member><Id>0</Id><MessageId>m</MessageId></member></Successful>"
                    "</PublishBatchResult></PublishBatchResponse>",
    "AssumeRole": f"<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SECRET}"
                  f"</SecretAccessKey><SessionToken>{TOKEN}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>"
                  "</AssumeRoleResult></AssumeRoleResponse>",
}
AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=(\w{64})$")
checked, wrong = 0, []


def check(method, path, headers, body, port):
    global checked
    match = AUTHORIZATION.match(headers["authorization"] or "")
    if not match:
        return wrong.append(f"{path}: no signature: {headers['authorization']}")
    key, day, region, service, names, signature = match.groups()
    signed = {name: headers[name] for name in names.split(";")}
    must = {"host", "x-amz-date", "x-amz-security-token"} | {name.lower() for name in headers if name.lower().startswith("x-amz")}
    if not must <= set(signed):
        wrong.append(f"{path}: {must - set(signed)} not signed")
    # botocore encodes a path once more for all services but S3, as they expect it.
    request = AWSRequest(method=method, url=f"http://{headers['host']}{path}", headers=signed, data=body)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = (S3SigV4Auth if service == "s3" else SigV4Auth)(Credentials(KEY, SECRET, TOKEN), service, region)
    auth.headers_to_sign = lambda request: request.headers
    theirs = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    checked += 1
    if theirs != signature or key != KEY or day != headers["x-amz-date"][:8]:
        wrong.append(f"{service} {path}: signed {signature}, and should be {theirs}")


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        check(self.command, self.path, self.headers, body, self.server.server_address[1])
        form = dict(urllib.parse.parse_qsl(body.decode())) if body.startswith(b"Action=") else {}
        operation = form.get("Action") or (self.headers["x-amz-target"] or ".").split(".")[1]
        text = ANSWERS.get(operation, "" if self.command == "PUT" else "{}").encode()
        self.send_response(200)
        self.send_header("etag", '"0"')
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = answer

    def log_message(self, *args):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    env = dict(os.environ, AWS_ENDPOINT_URL=base, AWS_REGION="eu-central-1", AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET,
               AWS_SESSION_TOKEN=TOKEN)
    role = "arn:aws:iam::123456789012:role/a"
    targets = [("dynamodb://tbl", "-"), (f"dynamodb://tbl?role={role}", "-"), (f"dynamodb://tbl?endpoint={base}/with/a%2520path~", "-"),
               ("sqs://123456789012/q", "-"), ("sqs://123456789012/q.fifo", "-"), ("sns:arn:aws:sns:us-west-2:123456789012:t", "-"),
               ("events://bus", "-"), ("kinesis://stream", "-"), ("firehose://stream", "-"), ("xray:", "-"), ("s3://bucket", "plain/key"),
               ("s3://bucket/pre fix/ä", "dt=2026-11-20/a b+c%20d/€😀/~'()*!@$,;:&=?#[]{}|^`<>\"\\"),
               ("s3://dotted.bucket?storage_class=GLACIER_IR&sse=aws:kms&tags=a=b%20c", "-"), (f"s3://bucket?endpoint={base}/base", "k/..k")]
    for target, name in targets:
        answer = subprocess.run([os.environ["BUILD"] + "/tests/net/test_tls", "write", target, name, "2"], env=env, capture_output=True,
                              text=True, timeout=600).stdout.strip()
        if answer != "2 OK":
            wrong.append(f"{target}: answer {answer!r}")
    server.shutdown()
    for line in wrong:
        print(line)
    if wrong or checked < 2 * len(targets):
        sys.exit(f"{checked} signatures looked at")
    print(f"{len(targets)} passed")


main()
