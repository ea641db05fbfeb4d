"""Debian's headless Chromium, driven through the DevTools protocol over a pipe: no port, no driver, no library."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time

from harness import work_folder

PROGRAMS = ("chromium-headless-shell", "chromium")


class Failed(Exception):
    pass


def find():
    for name in PROGRAMS:
        if shutil.which(name):
            return shutil.which(name)
    raise Failed(f"no Chromium is installed; run scripts/setup.sh check, or on Debian: apt-get install {PROGRAMS[0]}")


class Browser:
    """One process with one page. Every wait is bounded."""

    def __init__(self, seconds=600):
        self.seconds = seconds
        self.folder = str(work_folder())
        self.said = open(os.path.join(self.folder, "stderr"), "w+b")
        read_theirs, self.write_ours = os.pipe()
        self.read_ours, write_theirs = os.pipe()
        arguments = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--remote-debugging-pipe", f"--user-data-dir={self.folder}/profile", "--no-first-run",
                     "--disable-background-networking", "--proxy-server=127.0.0.1:9", "about:blank"]
        # The protocol's descriptors are 3 and 4.
        command = f'exec 3<&{read_theirs} 4>&{write_theirs}; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", command, "browser", *arguments], pass_fds=(read_theirs, write_theirs),
                                        stdout=subprocess.DEVNULL, stderr=self.said, start_new_session=True)
        os.close(read_theirs)
        os.close(write_theirs)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # Debian's program is a shell script that starts the browser
        self.process.wait()
        os.close(self.read_ours)
        os.close(self.write_ours)
        self.said.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- the protocol: JSON texts, each with a NUL after it ----

    def why(self):
        self.said.seek(0)
        return self.said.read().decode(errors="replace")[-2000:]

    def receive(self, until):
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_ours], [], [], left)[0]:
                raise Failed(f"Chromium did not answer within {self.seconds} s: {self.why()}")
            piece = os.read(self.read_ours, 1 << 20)
            if not piece:
                raise Failed(f"Chromium cannot run: {self.why()}")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.write_ours, text):]
        until = time.monotonic() + self.seconds
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        until = time.monotonic() + self.seconds
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.receive(until))

    # ---- the page ----

    def open(self, path, width, height=900, fragment="", dark=False, media="screen", touch=False):
        """Loads the file; returns how many seconds that took."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")
        self.evaluate("0")
        self.events = []
        began = time.monotonic()
        self.call("Page.navigate", url=f"file://{path}{fragment}")
        self.wait_for("Page.loadEventFired")
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - began

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise Failed(f"{expression[:80]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def complaints(self):
        """What the console got, exceptions, and requests for anything but the file itself."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening"):
                found.append(json.dumps(parameters)[:500])
            if method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:", "about:")):
                found.append("request: " + parameters["request"]["url"])
        return found

    KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "PageDown": 34, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40}

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=self.KEYS[key],
                      **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))

    def tap(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def pixels(self, x, y, width, height):
        """The picture of that part of the page, as PNG: equal pictures are equal texts."""
        clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        return self.call("Page.captureScreenshot", format="png", clip=clip)["data"]

    def screenshot(self, path):
        """The whole page, to look at."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def open_plain(self, path):
        """For a page whose scripts are off."""
        self.events = []
        self.call("Page.navigate", url=f"file://{path}")
        self.wait_for("Page.loadEventFired")

    def text(self):
        return self.evaluate("document.body.innerText")
