#!/usr/bin/env python3
"""The blocks of the documents: runs those that can run here, compares what they print with what the documents show, checks every
configuration, and the commands of the others. check_docs.py [FILE...]; CONTRIBUTING.md has the kinds of blocks."""
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# jsonschema and botocore are in the pinned environment of SAM.
SAM = subprocess.run([HERE.parent / "package/install.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
if not sys.prefix.startswith(SAM):
    os.execv(f"{SAM}/bin/python", [f"{SAM}/bin/python", *sys.argv])

import blocks  # noqa: E402
import claims  # noqa: E402
import clone  # noqa: E402
import commands  # noqa: E402
import prose  # noqa: E402
import shell  # noqa: E402
import snippets  # noqa: E402


def look(found):
    """What is wrong with blocks that do not run, and how many are right."""
    wrong = []
    for block in found:
        problem = commands.check(block.text) if (block.language, block.kind) == ("sh", "shown") else snippets.check(block)
        if problem:
            wrong.append(f"{block.where()}: {problem}")
    return wrong, len([b for b in found if b.kind not in ("run", "output")]) - len(wrong)


def read(path):
    wrong = prose.check(path)
    return wrong, not wrong


def start_services(folder):
    """One DynamoDB Local for all documents that need it; it ends with this process."""
    subprocess.run([clone.TOP / "tests/services/start.sh", "--owner", str(os.getpid()), folder, "dynamodb"], check=True)
    os.environ["DOCS_SERVICES"] = folder


def main():
    os.chdir(clone.TOP)
    clone.prepare()
    asked = [os.path.relpath(p, clone.TOP) for p in map(os.path.abspath, sys.argv[1:])]
    documents = {path: blocks.read(path) for path in asked or blocks.documents()}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as services, concurrent.futures.ThreadPoolExecutor(3) as pool:
        if any(map(shell.needs_dynamodb, documents)):
            start_services(services)
        claimed = [] if asked else [pool.submit(claims.check)]
        results = claimed + [pool.submit(f, *a) for path, found in documents.items() for f, a in ((shell.document, (path, found)), (look, (found,)), (read, (path,)))]
        wrong, good = (sum(column, start) for column, start in zip(zip(*(r.result() for r in results)), ([], 0)))
    kinds = collections.Counter(b.kind for found in documents.values() for b in found)
    print(", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    shown = collections.Counter(p for p, found in documents.items() for b in found if b.kind == "shown")
    print(f"not run, {sum(shown.values())}: " + ", ".join(f"{path} {n}" for path, n in sorted(shown.items())))
    print("\n".join(wrong), end="\n" if wrong else "")
    print(f"{good} passed, {len(wrong)} failed")
    sys.exit(1 if wrong else 0)


main()
