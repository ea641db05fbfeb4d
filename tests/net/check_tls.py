#!/usr/bin/env python3
"""TLS: roots from AWS_CA_BUNDLE are the ones that count, a stranger's certificate and a wrong name are refused, and connections are
kept. A TLS server here, the sinks in build/tests/sinks/test_tls. The keys in tests/net/tls/ are for this alone."""
import http.server
import os
import ssl
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
handshakes = 0


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def finish_request(self, request, address):
        global handshakes
        try:
            request.do_handshake()
        except (ssl.SSLError, OSError):
            return
        handshakes += 1
        super().finish_request(request, address)

    def handle_error(self, request, address):
        pass


def run(port, host, bundle, target):
    env = dict(os.environ, AWS_ENDPOINT_URL=f"https://{host}:{port}", AWS_REGION="us-east-1", AWS_ACCESS_KEY_ID="AKIDEXAMPLE",
               AWS_SECRET_ACCESS_KEY="secret")
    env.pop("AWS_CA_BUNDLE", None)
    if bundle:
        env["AWS_CA_BUNDLE"] = os.path.join(HERE, "tls", bundle)
    done = subprocess.run([os.environ["BUILD"] + "/tests/net/test_tls", "write", target, "-", "20"], env=env, capture_output=True, text=True, timeout=600)
    return done.stdout.strip()


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(HERE, "tls/ca.pem"), os.path.join(HERE, "tls/key.pem"))
    server = Server(("127.0.0.1", 0), Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    cases = [("localhost", "ca.pem", "20 OK"), ("localhost", "other.pem", "0 FATAL UntrustedCertificate"),
             ("localhost", None, "0 FATAL UntrustedCertificate"), ("127.0.0.1", "ca.pem", "0 FATAL UntrustedCertificate"),
             ("localhost", "absent.pem", "0 FATAL UntrustedCertificate")]
    bad = 0
    webhook = "https://{}:{}/hook#attempts=1"
    for host, bundle, wanted, target in [(*case, target) for target in ("dynamodb://tbl", webhook) for case in cases]:
        before = handshakes
        answer = run(port, host, bundle, target.format(host, port))
        if answer != wanted:
            print(f"{host}, {bundle}: {answer!r}, and should be {wanted!r}")
            bad += 1
        if wanted.startswith("20") and handshakes != before + 1:
            print(f"20 requests took {handshakes - before} handshakes")
            bad += 1
    server.shutdown()
    if bad:
        sys.exit(1)
    print(f"{2 * len(cases)} passed, 0 failed")


main()
