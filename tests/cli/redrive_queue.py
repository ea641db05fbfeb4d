"""A queue service that is fast at 100,000 messages, which moto is not: SQS's JSON protocol with visibility timeouts, receipts that grow old,
FIFO groups, RedrivePolicy and limits, by the API Reference; and every request in a log. It can also lie, fail and stall by a plan."""
import collections
import hashlib
import heapq
import json
import socketserver
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler


class Message:
    __slots__ = ("id", "body", "group", "sent", "receives", "receipt", "until", "first")

    def __init__(self, body, group):
        self.id, self.body, self.group = str(uuid.uuid4()), body, group
        self.sent, self.receives, self.receipt, self.until, self.first = time.time(), 0, None, 0.0, None


class Queue:
    def __init__(self, name, policy=None, most_in_flight=120000):
        self.name, self.policy, self.most_in_flight = name, policy, most_in_flight
        self.is_fifo = name.endswith(".fifo")
        self.messages = {}                     # id -> Message, in order
        self.visible = collections.deque()     # standard: ids
        self.hidden = []                       # heap of (until, id)
        self.receipts = {}                     # receipt -> id
        self.moved, self.deleted, self.deleted_order = [], set(), []

    def add(self, body, group=None):
        m = Message(body, group)
        self.messages[m.id] = m
        self.visible.append(m.id)
        return m.id

    def wake(self, now):
        while self.hidden and self.hidden[0][0] <= now:
            _, id_ = heapq.heappop(self.hidden)
            m = self.messages.get(id_)
            if m and m.until and m.until <= now:
                m.until = 0.0
                self.visible.append(id_)

    def in_flight(self, now):
        return sum(m.until > now for m in self.messages.values())

    def hide(self, m, until):
        m.until = until
        heapq.heappush(self.hidden, (until, m.id))

    def candidates(self, now):
        if not self.is_fifo:
            while self.visible:
                m = self.messages.get(self.visible.popleft())
                if m and m.until == 0.0:
                    yield m
            return
        blocked = {m.group for m in self.messages.values() if m.until > now}
        for m in list(self.messages.values()):
            if m.group not in blocked and m.until <= now:
                yield m

    def receive(self, n, seconds, now):
        self.wake(now)
        found = []
        for m in self.candidates(now):
            if self.policy and m.receives >= self.policy["maxReceiveCount"]:
                del self.messages[m.id]
                self.moved.append(m.body)
                continue
            m.receives += 1
            m.first = m.first or now
            m.receipt = f"{m.id}#{m.receives}#" + "r" * 300
            self.receipts[m.receipt] = m.id
            found.append(m)
            if len(found) == n:
                break
        for m in found:
            self.hide(m, now + seconds)
        return found

    def of_receipt(self, receipt):
        m = self.messages.get(self.receipts.get(receipt))
        return m if m and m.receipt == receipt else None


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.queues, self.log, self.counts = threading.Lock(), {}, [], collections.Counter()
        self.plans = {}  # by queue: (operation, body, reply) -> reply or None: what is answered instead; "drop": nothing
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that was killed is no error."""

    def queue(self, name, **more):
        return self.queues.setdefault(name, Queue(name, **more))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        operation = self.headers["x-amz-target"].rpartition(".")[2]
        status, answer = self.answer(operation, body)
        plan = self.server.plans.get(body.get("QueueName") or body["QueueUrl"].rpartition("/")[2])
        if plan:
            told = plan(operation, body, answer)
            if told == "drop":
                self.close_connection = True
                return
            status, answer = told if told is not None else (status, answer)
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()

    def answer(self, operation, body):
        server = self.server
        name = body.get("QueueName") or body["QueueUrl"].rpartition("/")[2]
        with server.lock:
            server.counts[operation] += 1
            queue = server.queues.get(name)
            if not queue:
                return 400, {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "The specified queue does not exist."}
        if operation == "ReceiveMessage":
            return self.receive(queue, body)
        with server.lock:
            return getattr(self, operation)(queue, body, time.time())

    def GetQueueUrl(self, queue, _body, _now):
        return 200, {"QueueUrl": f"{self.server.url}/123456789012/{queue.name}"}

    def GetQueueAttributes(self, queue, _body, now):
        flying = queue.in_flight(now)
        attributes = {"QueueArn": f"arn:aws:sqs:us-east-1:123456789012:{queue.name}",
                      "ApproximateNumberOfMessages": str(len(queue.messages) - flying), "ApproximateNumberOfMessagesNotVisible": str(flying)}
        if queue.policy:
            attributes["RedrivePolicy"] = json.dumps(queue.policy)
        return 200, {"Attributes": attributes}

    def receive(self, queue, body):
        until = time.time() + body["WaitTimeSeconds"]
        while True:
            with self.server.lock:
                now = time.time()
                if len(queue.messages) > queue.most_in_flight and queue.in_flight(now) >= queue.most_in_flight:
                    return 403, {"__type": "com.amazonaws.sqs#OverLimit", "message": "Too many messages in flight."}
                found = queue.receive(body["MaxNumberOfMessages"], body["VisibilityTimeout"], now)
                if found or now >= until:
                    return 200, {"Messages": [self.entry(m, m.receipt) for m in found]} if found else {}
            time.sleep(0.02)

    @staticmethod
    def entry(m, receipt):
        attributes = {"ApproximateReceiveCount": str(m.receives), "SentTimestamp": str(int(m.sent * 1000))}
        if m.group:
            attributes["MessageGroupId"] = m.group
        return {"MessageId": m.id, "ReceiptHandle": receipt, "Body": m.body, "MD5OfBody": hashlib.md5(m.body.encode()).hexdigest(), "Attributes": attributes}

    @staticmethod
    def each(body, one):
        done, failed = [], []
        for entry in body["Entries"]:
            code = one(entry)
            (failed if code else done).append({"Id": entry["Id"], **({"Code": code, "SenderFault": True, "Message": "x"} if code else {})})
        return 200, {"Successful": done, "Failed": failed}

    def DeleteMessageBatch(self, queue, body, _now):
        def one(entry):
            m = queue.of_receipt(entry["ReceiptHandle"])
            if not m:
                id_ = queue.receipts.get(entry["ReceiptHandle"])
                return None if id_ in queue.deleted else "ReceiptHandleIsInvalid"
            del queue.messages[m.id]
            queue.deleted.add(m.id)
            queue.deleted_order.append(m.body)
            return None
        return self.each(body, one)

    def ChangeMessageVisibilityBatch(self, queue, body, now):
        def one(entry):
            m = queue.of_receipt(entry["ReceiptHandle"])
            if not m or m.until <= now:
                return "ReceiptHandleIsInvalid"
            if entry["VisibilityTimeout"] and now + entry["VisibilityTimeout"] > m.first + 43200:
                return "InvalidParameterValue"
            if entry["VisibilityTimeout"]:
                queue.hide(m, now + entry["VisibilityTimeout"])
            else:
                m.until = 0.0
                queue.visible.append(m.id)
            return None
        return self.each(body, one)
