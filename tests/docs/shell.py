"""Runs the blocks of one document, in order and in one shell, and compares what they print with what the document shows."""
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import clone

SETUP = pathlib.Path(__file__).resolve().parent / "setup"
LIMIT_S = 600


def matcher(shown):
    """A document's output as a regular expression: … stands for any text in its line, alone in a line for any lines."""
    parts = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*?".join(re.escape(p) for p in line.rstrip().split("…")) + r"[ \t]*\n")
    return re.compile("".join(parts))


def differs(shown, printed):
    """None, or the difference in words."""
    text = "".join(line.rstrip() + "\n" for line in printed.rstrip("\n").split("\n"))
    if matcher(shown).fullmatch(text):
        return None
    return "".join(difflib.unified_diff(shown.splitlines(True), text.splitlines(True), "the document", "printed"))


def script(blocks, folder):
    """The shell's script. Each block ends with a file that says so; the shell ends at the first command that fails."""
    lines = ["set -e", "umask 022"]
    for n, block in enumerate(blocks):
        at = folder / f"block{n}"
        if block.kind in ("file", "config", "record"):
            lines.append(f"cp '{at}' '{block.options['file']}'")
            continue
        command = f". '{at}'" if block.language == "sh" else f"python3 '{at}'"
        wanted = block.options.get("exit")
        lines.append(f"exec >'{at}.out' 2>'{at}.err'")
        lines.append(command if wanted is None else f"set +e\n{command}\ngot=$?\nset -e\n[ $got = {wanted} ]")
        lines.append(f"touch '{at}.done'")
    return "\n".join(lines) + "\n"


def steps(blocks):
    return [b for b in blocks if b.kind in ("run", "file") or (b.kind in ("config", "record") and "file" in b.options)]


def name(path):
    return path.removeprefix("docs/").removesuffix(".md").replace("/", "-")


def setup(path):
    """What the shell of a document reads first, if there is one."""
    file = SETUP / (name(path) + ".sh")
    return file if file.exists() else None


def needs_dynamodb(path):
    return setup(path) is not None and "world.sh" in setup(path).read_text(encoding="utf-8")


def execute(path, todo, folder):
    """Runs the script in a clone, within its time; returns what was printed when it went wrong outside of a block."""
    tree, environment = clone.make(folder)
    for n, block in enumerate(todo):
        prelude = SETUP / (name(path) + ".py")
        before = prelude.read_text(encoding="utf-8") if block.kind == "run" and block.language == "python" and prelude.exists() else ""
        (folder / f"block{n}").write_text(before + block.text, encoding="utf-8")
    text = (f". '{setup(path)}'\n" if setup(path) else "") + script(todo, folder)
    (folder / "script").write_text(text, encoding="utf-8")
    with open(folder / "log", "wb") as log:
        shell = subprocess.Popen(["bash", str(folder / "script")], cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 start_new_session=True)
        try:
            shell.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            pass
        # What a block left running (a server, a tail in the background) ends with it.
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shell.wait()
    return (folder / "log").read_text(errors="replace")


def judge(blocks, todo, folder, log):
    """The failures of a document, in words, and how many blocks were right."""
    wrong, good = [], 0
    ran = {id(b): folder / f"block{n}" for n, b in enumerate(todo)}
    before = None
    for block in blocks:
        at = ran.get(id(block))
        if block.kind == "run" and not at.with_suffix(".done").exists():
            said = "".join(p.read_text(errors="replace")[-3000:] for p in (at.with_suffix(".out"), at.with_suffix(".err")) if p.exists())
            return wrong + [f"{block.where()}: the block failed, or took over {LIMIT_S} s\n{said or log}"], good
        if block.kind == "output":
            printed = before.with_suffix(".out").read_text(encoding="utf-8", errors="replace")
            problem = differs(block.text, printed)
            if problem and os.environ.get("BLESS"):
                block.replace(printed)
            wrong += [f"{block.where()}: prints something else\n{problem}"] if problem else []
            good += not problem
        good += block.kind == "run"
        before = at or before
    return wrong, good


def document(path, blocks):
    todo = steps(blocks)
    if not any(b.kind == "run" for b in todo):
        return [], 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-docs-"))
    try:
        log = execute(path, todo, folder)
        return judge(blocks, todo, folder, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
