#!/usr/bin/env python3
"""action.yml and what it runs, against a release of this build: findings are annotations, a warning or a case fails the job, and nothing is
run that differs from its sum."""
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = os.environ.get("BUILD", "build")
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[-2500:]}")
    passed += 1


def release(work, version):
    """A folder of releases with this one, of what this machine has built."""
    name, place = f"sluice-{version}-linux-{platform.machine()}", work / f"releases/v{version}"
    place.mkdir(parents=True)
    done = subprocess.run(["make", "--no-print-directory", "-s", "install", f"BUILD={BUILD}", f"DESTDIR={work}/tree", "PREFIX=/usr"], cwd=TOP, capture_output=True, text=True, check=False)
    check("it is installed", done.returncode == 0, done.stderr)
    with tarfile.open(place / f"{name}.tar.gz", "w:gz") as tar:
        tar.add(work / "tree/usr", name)
    shutil.rmtree(work / "tree")
    (place / "SHA256SUMS").write_text(f"{hashlib.sha256((place / f'{name}.tar.gz').read_bytes()).hexdigest()}  {name}.tar.gz\n")
    return place / f"{name}.tar.gz"


def main():
    with tempfile.TemporaryDirectory() as name:
        action(pathlib.Path(name))
    print(f"{passed} passed, 0 failed")


def action(work):
    version = (TOP / "VERSION").read_text().strip()
    tarball = release(work, version)
    repository = work / "repository"
    shutil.copytree(TOP / "examples/shop", repository / "deploy")

    def job(**inputs):
        env = {"VERSION": version, "CONFIG": "deploy/sluice.json", "CASES": "", "SAMPLE": "", "WARNINGS": "fail", "JUNIT": "", "RELEASES": f"file://{work}/releases", **inputs}
        inside = re.findall(r"^        (\w+): \$", (TOP / "action.yml").read_text(), re.M)
        check("the action gives the script all that it reads", set(inside) == set(env), inside)
        return subprocess.run([TOP / "scripts/release/action.sh"], cwd=repository, env={"PATH": os.environ["PATH"], "TMPDIR": str(work), **env}, capture_output=True, text=True, timeout=600,
                              check=False)
    done = job(CASES="deploy/tests", JUNIT="junit.xml", WARNINGS="allow")
    check("the action checks a configuration and runs its cases", done.returncode == 0 and (repository / "junit.xml").exists(), done.stdout + done.stderr)
    (repository / "bad.json").write_text('{"on_failure": "report", "routes": [{"name": "a", "handler": "archiv", "to": "s3://bucket/"}]}')
    done = job(CONFIG="bad.json")
    check("a mistake is an annotation", done.returncode == 2 and "::error file=bad.json::sluice check: bad.json: $.routes[0].handler" in done.stdout, done.stdout + done.stderr)
    twice = [{"name": name, "handler": "replicate", "to": "dynamodb://copy"} for name in "ab"]
    (repository / "risky.json").write_text(json.dumps({"on_failure": "report", "report_batch_item_failures": True, "routes": twice}))
    done, allowed = job(CONFIG="risky.json"), job(CONFIG="risky.json", WARNINGS="allow")
    check("a warning fails, unless it may not", done.returncode == 1 and allowed.returncode == 0 and "::warning file=risky.json::" in done.stdout, done.stdout + done.stderr)
    case = next((repository / "deploy/tests").glob("*.json"))
    wrong = json.loads(case.read_text())
    wrong["expect"] = []
    (repository / "wrong.json").write_text(json.dumps(wrong))
    done = job(CASES="wrong.json deploy/tests", WARNINGS="allow")
    check("a case that fails fails it", done.returncode != 0, done.stdout + done.stderr)
    done = job(VERSION="1.2.3/../x")
    check("a version is one", done.returncode == 2 and "::error::" in done.stdout, done.stdout)
    done = job(VERSION="9.9.9")
    check("a release that is not there is said", done.returncode == 2 and "has no sluice-9.9.9-linux" in done.stdout, done.stdout)
    with open(tarball, "ab") as file:
        file.write(b"x")
    done = job()
    check("nothing is run that differs from its sum", done.returncode == 2 and "differs from its SHA256SUMS" in done.stdout, done.stdout)
    check("nothing is left", not list(work.glob("sluice-??????")))


main()
