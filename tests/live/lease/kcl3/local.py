"""In front of DynamoDB Local: its ARNs have the Region "ddblocal", and the adapter takes AWS's Regions alone."""
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OURS, THEIRS = b"arn:aws:dynamodb:us-east-1:", b"arn:aws:dynamodb:ddblocal:"
NOT_PASSED_ON = {"host", "content-length", "accept-encoding", "x-amz-crc32", "transfer-encoding", "connection", "date", "server"}


class Proxy(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", 65536

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).replace(OURS, THEIRS)
        behind = http.client.HTTPConnection(self.server.behind)
        behind.request("POST", self.path, body, {k: v for k, v in self.headers.items() if k.lower() not in NOT_PASSED_ON})
        answer = behind.getresponse()
        body = answer.read().replace(THEIRS, OURS)
        try:
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:  # who asked was killed
            self.close_connection = True
        behind.close()


def serve(behind):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads, server.behind = True, behind
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
