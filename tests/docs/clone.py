"""A copy of the tree that looks like a fresh clone which has been built: the files that git knows, rooms that no document writes to and build/ as links."""
import os
import pathlib
import shutil
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
BUILD = BUILD if BUILD.is_absolute() else TOP / BUILD
# What `make all` made, and what `make install` makes of it. Other things in build/ (tests, packages) are not in a fresh clone's.
NOT_LINKED = {"tests", "asan", "clang", "bench", "libfuzzer", "cover"}

LINKED = ("aws", "base", "bench", "cli", "data", "esm", "live", "net", "runtime", "sinks", "streams", "tests")  # no document writes there


def tracked():
    found = subprocess.run([TOP / "scripts/files.sh"], text=True, capture_output=True, check=True)
    return [f for f in found.stdout.splitlines() if (TOP / f).is_file()]


def prepare():
    """Builds what several documents would build at the same time: the folders in build/ are shared."""
    build = pathlib.Path(os.path.relpath(BUILD, TOP))  # make knows no paths with spaces, which the tree's may have
    library, manual = build / "libsluice-runtime.a", build / "man/sluice.1"
    subprocess.run(["make", "-s", "--no-print-directory", f"BUILD={build}", f"COMMIT={commit()}", str(library), str(manual)],
                   cwd=TOP, env=clean(), check=True, stdout=subprocess.DEVNULL)


def commit():
    """The commit that the build is of: with another one make would link again."""
    stamps = [p.name for p in BUILD.glob("version-*")]
    return stamps[0].split("-", 2)[2] if stamps else "unknown"


def clean():
    """The environment of somebody who just opened a terminal: no make above, no credentials, no settings of ours."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "MAKE", "MFLAGS", "SLUICE_", "ASAN_", "BUILD", "CORPUS", "SANITIZE"))}
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return {**kept, "XDG_CACHE_HOME": cache, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def make(folder):
    """The clone in `folder`, and the environment in which its blocks run."""
    for name in (n for n in tracked() if n.split("/")[0] not in LINKED):
        target = folder / "sluice" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(TOP / name, target)
    for room in LINKED:
        (folder / "sluice" / room).symlink_to(TOP / room)
    build = folder / "sluice/build"
    build.mkdir()
    for entry in BUILD.iterdir():
        if entry.name not in NOT_LINKED:
            (build / entry.name).symlink_to(entry)
    home = folder / "home"
    (home / "tmp").mkdir(parents=True)
    return folder / "sluice", {**clean(), "HOME": str(home), "TMPDIR": str(home / "tmp"), "COMMIT": commit(), "TOP": str(TOP), "DOCS_SERVICES": os.environ.get("DOCS_SERVICES", ""),
                               "PATH": f"{home}/.local/bin:{build}:{os.environ['PATH']}"}
