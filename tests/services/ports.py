"""A port for a server that cannot be told to choose one itself."""
import random
import socket

# Below the kernel's range for outgoing connections, so that none of those takes it before the server does.
PORTS = range(20000, 32000)
claims = []  # open as long as the process that asked, so that no other test is given its ports


def claim(port):
    """Whether the port is free, and now promised to this process: by a name that the kernel forgets when the process ends."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0sluice-tests-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        name.close()
        return False
    claims.append(name)
    return True


def free_port(ports=PORTS):
    for port in random.SystemRandom().sample(ports, min(len(ports), 1000)):
        if claim(port):
            return port
    raise OSError(f"no free port from {ports[0]} to {ports[-1]}")
