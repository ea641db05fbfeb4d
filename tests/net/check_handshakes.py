#!/usr/bin/env python3
"""TLS handshakes: many requests at once need one in full, the other connections resume its session, also after a pause; one slow answer
holds nobody up; a server that refuses sessions is served as well; and no session makes up for a certificate that is not trusted. TLS
servers here, the sinks in build/tests/net/test_tls, which writes 100 items at once for each target that it is given."""
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENT = os.environ["BUILD"] + "/tests/net/test_tls"
CA = os.path.join(HERE, "tls/ca.pem")
bad = good = 0


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.hold()
        self.send_response(200)
        self.send_header("content-length", "2")
        if self.server.closes:
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b"{}")
        self.wfile.flush()

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Counts handshakes in full and resumed ones."""
    request_queue_size = 128

    def __init__(self, cert=CA, key="tls/key.pem", tickets=True, closes=False, forgets=False, tls12=False, held=0):
        super().__init__(("127.0.0.1", 0), Answer)
        self.cert, self.key, self.tickets, self.closes, self.forgets, self.tls12 = cert, os.path.join(HERE, key), tickets, closes, forgets, tls12
        self.full = self.resumed = self.served = 0
        self.held, self.others = held, threading.Event()
        self.lock = threading.Lock()
        self.context = self.new_context()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def new_context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self.tls12:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        if not self.tickets:
            context.num_tickets = 0
            context.options |= ssl.OP_NO_TICKET
        context.load_cert_chain(self.cert, self.key)
        return context

    def hold(self):
        """Request number `held` has its answer when 90 others have theirs."""
        with self.lock:
            self.served += 1
            number = self.served
        if number >= 91:
            self.others.set()
        if number == self.held and not self.others.wait(600):
            raise OSError("the others wait for this one")

    def finish_request(self, request, address):
        context = self.new_context() if self.forgets else self.context
        try:
            with context.wrap_socket(request, server_side=True) as tls:
                with self.lock:
                    if tls.session_reused:
                        self.resumed += 1
                    else:
                        self.full += 1
                super().finish_request(tls, address)
        except (ssl.SSLError, OSError):
            pass

    def handle_error(self, request, address):
        pass

    def target(self, host="localhost"):
        return f"dynamodb://tbl?endpoint=https://{host}:{self.server_address[1]}"


def environment(bundle):
    env = dict(os.environ, AWS_REGION="us-east-1", AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="secret", AWS_MAX_ATTEMPTS="1")
    env.pop("AWS_CA_BUNDLE", None)
    if bundle:
        env["AWS_CA_BUNDLE"] = bundle
    return env


def waves(*steps, bundle=CA):
    done = subprocess.run([CLIENT, "waves", *steps], env=environment(bundle), capture_output=True, text=True, timeout=600)
    return done.stdout.split("\n")[:-1] + ([done.stderr] if done.returncode else [])


def check(what, said, wanted, server=None, full=None, resumed=None):
    global bad, good
    counts = (server.full, server.resumed) if server else None
    is_good = said == wanted and (full is None or server.full in full) and (resumed is None or server.resumed in resumed)
    if not is_good:
        print(f"{what}: {said}, and should be {wanted}; handshakes in full and resumed: {counts}, and should be in {full}, {resumed}")
    bad += not is_good
    good += is_good


def expired(folder):
    """A certificate for localhost that its CA signed for the past."""
    shutil.copy(CA, folder + "/ca.pem")
    open(folder + "/index.txt", "w").close()
    with open(folder + "/ca.cnf", "w") as config:
        config.write(f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index.txt\nnew_certs_dir={folder}\nserial={folder}/serial\npolicy=p\n"
                     "default_md=sha256\nunique_subject=no\n[p]\ncommonName=supplied\n[e]\nsubjectAltName=DNS:localhost\n")
    key, run = os.path.join(HERE, "tls/key.pem"), dict(check=True, capture_output=True, timeout=600)
    subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=past", "-out", folder + "/past.csr"], **run)
    subprocess.run(["openssl", "ca", "-batch", "-config", folder + "/ca.cnf", "-cert", CA, "-keyfile", key, "-create_serial", "-extensions", "e",
                    "-startdate", "20200101000000Z", "-enddate", "20210101000000Z", "-in", folder + "/past.csr", "-out", folder + "/past.pem"], **run)
    return folder + "/past.pem"


def main():
    refused = ["0 UntrustedCertificate"]
    many = range(1, 64)

    server = Server()
    check("100 at once", waves(server.target()), ["100"], server, [1], many)
    server = Server(tls12=True)
    check("TLS 1.2", waves(server.target()), ["100"], server, [1], many)
    server = Server()
    check("after a pause", waves(server.target(), "idle", server.target()), ["100", "100"], server, [1], range(2, 128))
    server = Server(closes=True)
    check("a connection for each request", waves(server.target()), ["100"], server, [1], [99])
    server = Server(tickets=False, tls12=True)
    check("sessions without tickets", waves(server.target()), ["100"], server, [1], many)
    server = Server(tickets=False)
    check("no tickets", waves(server.target()), ["100"], server, many, [0])
    server = Server(forgets=True)
    check("tickets that are refused", waves(server.target(), "idle", server.target()), ["100", "100"], server, range(2, 128), [0])

    for held in 1, 2, 30, 60:
        server = Server(held=held)
        check(f"one answer, number {held}, that comes after 90 others", waves(server.target()), ["100"], server)

    # What is not trusted stays so beside a session that is.
    server, other = Server(), Server(cert=os.path.join(HERE, "tls/ca.pem"))
    check("another name of the same server", waves(server.target(), server.target("127.0.0.1"), server.target()),
          ["100", *refused, "100"], server)
    check("an unknown issuer", waves(server.target(), bundle=os.path.join(HERE, "tls/other.pem")), refused)
    check("the system's roots", waves(server.target(), bundle=None), refused)
    with tempfile.TemporaryDirectory() as folder:
        past = Server(cert=expired(folder))
        check("a certificate of the past", waves(past.target()), refused)
        check("beside a good one", waves(other.target(), past.target()), ["100", *refused])
        bundles = {"no certificate": "", "not PEM": "-----BEGIN CERTIFICATE-----\nAAAA!\n-----END CERTIFICATE-----\n",
                   "not a certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                   "cut": open(CA).read()[:-40], "half DER": open(CA).read()[:200] + "\n-----END CERTIFICATE-----\n"}
        for what, text in bundles.items():
            with open(folder + "/bundle.pem", "w") as file:
                file.write(text)
            check(f"a bundle with {what}", waves(server.target(), bundle=folder + "/bundle.pem"), refused)
        own = open(CA).read()
        for what, text in {"twice": own + own, "in the middle": open(os.path.join(HERE, "tls/other.pem")).read() + "# ours\n" + own,
                           "old name": own.replace("BEGIN CERT", "BEGIN X509 CERT").replace("END CERT", "END X509 CERT"),
                           "CRLF": own.replace("\n", "\r\n")}.items():
            with open(folder + "/bundle.pem", "w", newline="") as file:
                file.write(text)
            check(f"a bundle with the certificate {what}", waves(server.target(), bundle=folder + "/bundle.pem"), ["100"])
        replace(server, folder)
    print(f"{good} passed, {bad} failed")
    sys.exit(bad > 0)


def replace(server, folder):
    """A bundle that changes while the process runs is read again; what cannot be read changes nothing."""
    bundle = folder + "/bundle.pem"
    shutil.copy(os.path.join(HERE, "tls/other.pem"), bundle)
    with subprocess.Popen([CLIENT, "waves", server.target(), "wait", server.target(), "wait", "idle", server.target()],
                          env=environment(bundle), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        said = [process.stdout.readline().strip()]
        shutil.copy(CA, bundle)
        process.stdin.write("\n")
        process.stdin.flush()
        said.append(process.stdout.readline().strip())
        with open(bundle, "w") as file:
            file.write("no certificate")
        process.stdin.write("\n")
        process.stdin.flush()
        said.append(process.stdout.readline().strip())
    check("a bundle that is replaced", said, ["0 UntrustedCertificate", "100", "100"])


main()
