"""Starts, watches and stops the servers that tests talk to; start.sh and stop.sh are its interface.

One supervisor per folder holds the servers as its children. It ends them, and itself, on SIGTERM, when the owner's process is gone,
or after MAX_S; should the supervisor be killed outright, the kernel ends them (PR_SET_PDEATHSIG). So nothing outlives a test run.
"""
import ctypes
import glob
import http.client
import os
import random
import re
import signal
import string
import subprocess
import sys
import time

from ports import free_port

ANSWER_S = 600    # a JVM on a busy machine
TRIES = 3         # another port each time
MAX_S = 4 * 3600  # no suite runs longer
POLL_S = 0.02
WATCH_S = 0.5
PR_SET_PDEATHSIG = 1

REGION = "us-east-1"
# DynamoDB Local refuses key ids that are not letters and digits, and has one database per key id and region.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIASLUICETESTS00000",
    "AWS_SECRET_ACCESS_KEY": "sluice-tests-secret",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "PGPASSWORD": "sluice-tests-postgres",
}
MOTO_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "moto_server.py")
# One compiler and one collector thread: it starts in half the time, and two cores have other work.
JAVA = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx1g"]


class Failure(Exception):
    pass


def dynamodb_command(port):
    home = os.environ["DYNAMODB_HOME"]
    return JAVA + [f"-Djava.library.path={home}", "-cp", f"{home}/indexed:{home}/*", "com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
                   "-inMemory", "-disableTelemetry", "-port", str(port)]


def moto_command(port):
    return [os.environ["MOTO_HOME"] + "/bin/python", MOTO_SERVER, "-H", "127.0.0.1", "-p", str(port)]


def opensearch_command(port):
    """Its data are in the service's folder, so that a node that is started again finds them."""
    home, more = os.environ["OPENSEARCH_HOME"], os.environ.get("OPENSEARCH_SETTINGS", "").split()
    folder = os.environ.get("OPENSEARCH_DATA", "opensearch")
    java = ["-Xmx512m" if word.startswith("-Xmx") else word for word in JAVA]
    return java + ["-cp", f"{home}:{home}/*", "SearchNode", folder, str(port)] + more


def postgres_command(port):
    return [os.path.dirname(os.path.abspath(__file__)) + "/postgres.sh", str(port)]


# name: (command of a port, what install.sh leaves when it is done, the variables that name the endpoint)
SERVICES = {
    "dynamodb": (dynamodb_command, os.environ.get("DYNAMODB_HOME", ""),
                 ["DYNAMODB_ENDPOINT", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"]),
    "opensearch": (opensearch_command, os.environ.get("OPENSEARCH_HOME", ""), ["OPENSEARCH_ENDPOINT"]),
    "postgres": (postgres_command, next(iter(glob.glob("/usr/lib/postgresql/*/bin/postgres")), ""),
                 ["POSTGRES_ENDPOINT"]),
    "moto": (moto_command, os.environ.get("MOTO_HOME", "") + "/installed", ["MOTO_ENDPOINT", "AWS_ENDPOINT_URL"]),
}


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)


def remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def started_at(pid):
    """The process's start time in ticks, which tells a process from a later one with its number; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def listens(pid, port):
    """Whether this process, and not a stranger, has the listening socket of the port."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            for row in list(file)[1:]:
                column = row.split()
                if column[3] == "0A" and int(column[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{column[9]}]")
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return not inodes.isdisjoint(links)


def answers(name, port):
    if name == "postgres":
        return subprocess.run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False).returncode == 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
        return True
    except OSError:
        return False
    finally:
        connection.close()


def launch(folder, name, port):
    """Starts the server's process, bound to the supervisor's life."""
    prctl = ctypes.CDLL(None).prctl
    command = SERVICES[name][0](port)
    if command[0] == "java":  # which asks nobody for TMPDIR, and unpacks a library there at each start
        command.insert(1, f"-Djava.io.tmpdir={folder}")
    with open(f"{folder}/{name}.log", "wb") as log:
        try:
            return subprocess.Popen(command, cwd=folder, env={**os.environ, "PGPASSWORD": ENVIRONMENT["PGPASSWORD"]}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        except OSError as error:
            raise Failure(f"{name}: {error.filename}: {error.strerror}; run tests/services/install.sh") from error


def last_line(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in file]
    return next((line for line in reversed(lines) if line), "it wrote nothing")


def start_services(folder, names, children):
    """Starts all, then waits for all, each anew on another port if it ended before it answered. Fills children: name -> (process, port)."""
    tries = dict.fromkeys(names, 0)
    waiting = list(names)
    until = time.monotonic() + ANSWER_S
    while waiting:
        for name in list(waiting):
            process, port = children.get(name, (None, 0))
            if process is None or process.poll() is not None:
                if tries[name] == TRIES:
                    raise Failure(f"{name} ended with status {process.returncode}: {last_line(f'{folder}/{name}.log')}")
                tries[name] += 1
                port = free_port()
                children[name] = (launch(folder, name, port), port)
            elif listens(process.pid, port) and answers(name, port):
                waiting.remove(name)
        if time.monotonic() > until:
            raise Failure(f"{waiting[0]} did not answer within {ANSWER_S} s; see {folder}/{waiting[0]}.log")
        time.sleep(POLL_S)


def lent(names):
    """name -> endpoint, of servers that run for all tests already, in the folder SLUICE_SHARED_SERVICES. DynamoDB Local alone: moto has
    one account for everybody."""
    shared = os.environ.get("SLUICE_SHARED_SERVICES")
    if not shared or "dynamodb" not in names or not os.path.exists(f"{shared}/env"):
        return {}
    with open(f"{shared}/env", encoding="utf-8") as file:
        variables = dict(line.rstrip("\n").split("=", 1) for line in file)
    return {"dynamodb": variables["DYNAMODB_ENDPOINT"]} if "DYNAMODB_ENDPOINT" in variables else {}


def publish(folder, children, borrowed):
    variables = dict(ENVIRONMENT)
    for name, endpoint in borrowed.items():  # its key id makes a database of the borrower's own
        variables["AWS_ACCESS_KEY_ID"] = "AKIA" + "".join(random.SystemRandom().choices(string.ascii_uppercase + string.digits, k=16))
        variables.update((variable, endpoint) for variable in SERVICES[name][2])
    for name, (process, port) in children.items():
        write(f"{folder}/{name}.pid", f"{process.pid}\n")
        variables.update((variable, ("" if name == "postgres" else "http://") + f"127.0.0.1:{port}") for variable in SERVICES[name][2])
    write(f"{folder}/env", "".join(f"{name}={value}\n" for name, value in variables.items()))


def end(folder, children):
    """Nothing they hold is worth a slow goodbye: all of it is in memory."""
    for name, (process, _) in children.items():
        # Killed, PostgreSQL would leave a piece of shared memory to the machine.
        process.send_signal(signal.SIGQUIT if name == "postgres" else signal.SIGKILL)
    for process, _ in children.values():
        process.wait()
    for name in ["env", "supervisor.pid"] + [f"{name}.pid" for name in children]:
        remove(f"{folder}/{name}")


def supervise(folder, names, borrowed, owner, born, report):
    """The supervisor's whole life. Tells the starter "" or one line of failure, through the pipe."""
    def on_signal(_number, _frame):
        raise SystemExit(0)

    children = {}
    signal.signal(signal.SIGTERM, on_signal)
    try:
        try:
            start_services(folder, names, children)
            publish(folder, children, borrowed)
        except (Failure, OSError) as error:
            os.write(report, str(error).encode() or b"failed")
            return
        os.close(report)
        until = time.monotonic() + MAX_S
        ended = set()
        while started_at(owner) == born and time.monotonic() < until:
            for name, (process, _) in children.items():
                if process.poll() is not None and name not in ended:
                    ended.add(name)
                    print(f"services: {name} ended by itself with status {process.returncode}", flush=True)
            time.sleep(WATCH_S)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end(folder, children)


def supervisor_of(folder):
    """The supervisor's pid, or None. A number that another process has by now does not count."""
    try:
        with open(f"{folder}/supervisor.pid", encoding="ascii") as file:
            pid, born = file.read().split()
    except (OSError, ValueError):
        return None
    return int(pid) if started_at(pid) == born else None


def start(arguments):
    owner = int(arguments.pop(0))
    if arguments[:1] == ["--owner"] and arguments[1:2] and arguments[1].isdigit():
        owner = int(arguments[1])
        arguments = arguments[2:]
    if len(arguments) < 2 or not set(arguments[1:]) <= set(SERVICES):
        raise Failure(f"usage: start.sh [--owner PID] DIR SERVICE..., of: {' '.join(sorted(SERVICES))}")
    folder, names = os.path.abspath(arguments[0]), list(dict.fromkeys(arguments[1:]))
    for name in names:
        if not os.path.exists(SERVICES[name][1]):
            raise Failure(f"{name} is not installed; run tests/services/install.sh {name}")
    born = started_at(owner)
    if born is None:
        raise Failure(f"no process {owner} to own the services")
    os.makedirs(folder, exist_ok=True)
    if supervisor_of(folder):
        raise Failure(f"services run in {folder} already; stop.sh {arguments[0]} ends them")
    remove(f"{folder}/env")
    borrowed = lent(names)
    names = [name for name in names if name not in borrowed]
    if not names:
        publish(folder, {}, borrowed)
        return
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setsid()
        log = os.open(f"{folder}/supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for descriptor, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, target)
        # Descriptors of the caller (a pipe that someone reads to its end, a lock) are not ours to keep open.
        os.closerange(3, writer)
        os.closerange(writer + 1, 1024)
        write(f"{folder}/supervisor.pid", f"{os.getpid()} {started_at(os.getpid())}\n")
        supervise(folder, names, borrowed, owner, born, writer)
        sys.exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        failure = pipe.read()
    if failure:
        os.waitpid(pid, 0)
        raise Failure(failure)
    if not os.path.exists(f"{folder}/env"):
        raise Failure(f"the supervisor ended early; see {folder}/supervisor.log")


def stop(arguments):
    if len(arguments) != 1:
        raise Failure("usage: stop.sh DIR")
    pid = supervisor_of(os.path.abspath(arguments[0]))
    if pid is None:
        remove(f"{os.path.abspath(arguments[0])}/env")  # of what was borrowed
        return
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 10
    while supervisor_of(os.path.abspath(arguments[0])) and time.monotonic() < until:
        time.sleep(POLL_S)
    if supervisor_of(os.path.abspath(arguments[0])):
        os.kill(pid, signal.SIGKILL)


def main():
    verb = {"start": start, "stop": stop}.get(" ".join(sys.argv[1:2]))
    if verb is None:
        sys.exit("services: use start.sh and stop.sh")
    try:
        verb(sys.argv[2:])
    except (Failure, OSError) as error:
        sys.exit(f"services: {error}")


main()
