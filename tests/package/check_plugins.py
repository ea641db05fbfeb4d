#!/usr/bin/env python3
"""`make package DEPLOY=folder` with a user's folder: what builds by the generated Makefile builds for Lambda and runs there, a second
build makes the same bytes, `sam build` takes the same files; and what could not work in Lambda is refused, with the line that says why."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import emulator
from emulator import MACHINE, TOP

OTHER = {"x86_64": "arm64", "arm64": "x86_64"}[MACHINE]
PLACE = {"x86_64": b"\xf3\x0f\x1e\xfa", "arm64": b"\x3f\x23\x03\xd5"}[MACHINE]  # endbr64; paciasp
TRIPLETS = {"x86_64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

HANDLER = """
#include <sluice/handler.h>
static enum sl_status work(void *self, struct sl_slice *slice, struct sl_error *error)
{
    (void)self, (void)slice, (void)error;
    return (%s) == 42 ? SL_OK : SL_FATAL;
}
SL_EXPORT const struct sl_handler SL_HANDLER = {SL_HANDLER_ABI, .name = "x", .summary = "a test", .handle = work};
"""
# Breaks under flags that are not the user's: it defines _GNU_SOURCE, and warns.
OWN = '#define _GNU_SOURCE\n#include "own.h"\n#include <string.h>\nstatic int unused_one(int unused) { return strverscmp("1", "2"); }\n' + HANDLER % "OWN"
MANY = '#include "many.h"\n#include "own.h"\n' + HANDLER % "many(OWN)"
ORDERS = """
#include <sluice/handler.h>
#include <stdexcept>
#include <string>
static std::string last;
static sl_status work(void *, sl_slice *, sl_error *)
{
    try {
        throw std::runtime_error(std::to_string(42));
    } catch (const std::exception &e) {
        last = e.what();
    }
    return last == "42" ? SL_OK : SL_FATAL;
}
extern "C" {
extern SL_EXPORT const sl_handler SL_HANDLER;
const sl_handler SL_HANDLER = {SL_HANDLER_ABI, "orders", "a test", 0, 0, 0, nullptr, nullptr, work};
}
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            (folder / name).write_text(content)
        else:
            json.dump({"routes": [{"name": handler, "handler": handler, "on_failure": "report"} for handler in content]}, (folder / name).open("w"))


def library(path, source, architecture=MACHINE, *flags):
    """A shared library, or for a name in .a an archive, as somebody else would have built it."""
    triplet = TRIPLETS[architecture]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "x"
        made.with_suffix(".c").write_text(source)
        include = f"-I{TOP}/build/include"
        if path.suffix == ".a":
            run(f"{triplet}-gcc", "-c", "-fPIC", "-o", made.with_suffix(".o"), made.with_suffix(".c"))
            run(f"{triplet}-ar", "rcsD", path, made.with_suffix(".o"))
        else:
            run(f"{triplet}-gcc", "-shared", "-fPIC", include, "-o", path, made.with_suffix(".c"), *flags)


def package(folder, zip_path=None, umask=-1, **variables):
    """(status, what was printed)"""
    command = ["make", "-s", "--no-print-directory", f"package-{MACHINE}", f"DEPLOY={folder}", *([f"ZIP={zip_path}"] if zip_path else []),
               *(f"{name}={value}" for name, value in variables.items())]
    done = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, umask=umask)
    return done.returncode, done.stdout


def whole_folder(folder):
    """One of each kind that a folder may have."""
    write(folder, {
        "own.c": OWN, "own.h": "#define OWN 42\n",
        "many/many.c": MANY, "many/more.c": '#include "many.h"\nint many(int n) { return n; }\n', "many/many.h": "int many(int n);\n",
        "orders.cc": ORDERS, "handlers/old.c": '#include "own.h"\n' + HANDLER % "OWN",
        "linked.c": "#include <tiny.h>\n#include <math.h>\nstatic volatile double two = 2;\n" + HANDLER % "tiny() + still() + (int)cbrt(two * 4) - 2",
        "include/tiny.h": "int tiny(void), still(void);\n", "plugin.mk": "PLUGIN_LIBS = -ltiny -lstill\n",
        "tests/test_own.c": "this is not C", "sluice.json": ["own", "many", "orders", "archive"], "second one.json": ["old", "linked", "built"],
        "licenses/libtiny.txt": "SPDX-" "License-Identifier: MIT\nPermission is hereby granted\n", "licenses/libstill.txt": "Do what you like.\n",
        "licenses/crate.txt": "A part of built.so.\n"})
    place = folder / "lib" / MACHINE
    library(place / "libtiny.so.3", "int tiny(void) { return 40; }", MACHINE, "-Wl,-soname,libtiny.so.3")
    (place / "libtiny.so").symlink_to("libtiny.so.3")
    library(place / "libstill.a", "int still(void); int still(void) { return 2; }")
    library(place / "libidle.so", "int idle(void) { return 1; }")  # nobody needs it: it stays out, and needs no license
    library(folder / "handlers" / MACHINE / "built.so", HANDLER % "42")


def runs(work, zip_path):
    """Every plugin is loaded and called, in a root that has nothing but the zip."""
    task = work / "root/var/task"
    task.mkdir(parents=True)
    (work / "root/tmp").mkdir()
    run("unzip", "-q", zip_path, "-d", task)
    become = [] if os.geteuid() == 0 else ["unshare", "-r"]
    record = json.dumps({"Records": [{"eventID": "1", "eventName": "INSERT", "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1", "dynamodb": {
        "Keys": {"PK": {"S": "a"}}, "NewImage": {"PK": {"S": "a"}}, "SequenceNumber": "1", "SizeBytes": 1, "StreamViewType": "NEW_IMAGE"}}]})
    for config in ("sluice.json", "second one.json"):
        routes = json.loads((task / config).read_text())["routes"]
        (task / "run.json").write_text(json.dumps({"routes": [route for route in routes if route["handler"] != "archive"]}))
        answers, output = emulator.invoke(work, [*become, "/usr/sbin/chroot", work / "root", "/var/task/bootstrap"], {
            "LAMBDA_TASK_ROOT": "/var/task", "SLUICE_CONFIG": "/var/task/run.json", "SLUICE_REPORT_BATCH_ITEM_FAILURES": "true", "AWS_REGION": "eu-west-1"},
            [record.encode()])
        assert answers == [b'{"batchItemFailures":[]}'], f"{config}: {answers}\n{output}"


def contents(archive):
    names = set(archive.namelist())
    assert {name for name in names if name.startswith("handlers/")} == {
        f"handlers/{name}.so" for name in ("own", "many", "orders", "old", "linked", "built")}, names
    assert {"sluice.json", "second one.json", "lib/libm.so.6", "lib/libtiny.so.3", "licenses/libtiny.txt", "licenses/libstill.txt", "licenses/crate.txt"} <= names
    assert not any("idle" in name or "test" in name or name.endswith((".c", ".o", ".map")) for name in names), names
    parts = {part["name"]: part for part in json.loads(archive.read("sbom.cdx.json"))["components"]}
    assert parts["libtiny"]["licenses"] == [{"expression": "MIT"}], parts["libtiny"]
    assert "licenses/libstill.txt" in parts["libstill"]["licenses"][0]["license"]["name"]
    assert "GCC-exception" in parts["libstdc++-12-dev"]["licenses"][0]["expression"] and "licenses/libstdc++-12-dev.copyright" in names
    for name in ("own", "many", "orders", "old", "linked"):
        assert PLACE in archive.read(f"handlers/{name}.so"), f"{name} was not built with the marks of its branches"
        with tempfile.NamedTemporaryFile() as so:
            so.write(archive.read(f"handlers/{name}.so"))
            so.flush()
            headers = run("readelf", "-lWd", so.name)
        assert "GNU_RELRO" in headers and "BIND_NOW" in headers and re.search(r"GNU_STACK.* RW ", headers), f"{name}: {headers}"
        assert "libstdc++" not in headers


def what_builds_there_builds_here(work):
    folder, zip_path = work / "a folder", work / "first.zip"
    whole_folder(folder)
    run("make", "-s", "-C", folder, "-f", TOP / "examples/skeleton/Makefile", f"SLUICE=-I{TOP}/build/include", "PLUGIN_LIBS=-ltiny -lstill",
        f"LDFLAGS=-Llib/{MACHINE}")
    assert {path.stem for path in (folder / "handlers").glob("*.so")} == {"own", "many", "orders", "linked"}
    status, said = package(folder, zip_path)
    assert status == 0, said
    with zipfile.ZipFile(zip_path) as archive:
        contents(archive)
    run(SAM / "bin/python", TOP / "tests/package/legal.py", zip_path)
    runs(work, zip_path)
    shutil.copytree(folder, work / "elsewhere", symlinks=True)
    status, said = package(work / "elsewhere", work / "second.zip", 0o077)
    assert status == 0 and zip_path.read_bytes() == (work / "second.zip").read_bytes(), f"a second build differs {said}"
    return folder, zip_path


def sam_takes_the_same(work, folder, zip_path):
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1", "DEPLOY": str(folder)}
    run(SAM / "bin/sam", "build", "--build-dir", work / "built", "--parameter-overrides", f"Architecture={MACHINE}", cwd=TOP, env=environment)
    built = work / "built/SluiceFunction"
    with zipfile.ZipFile(zip_path) as archive:
        wanted = {info.filename: archive.read(info) for info in archive.infolist()}
    assert {str(path.relative_to(built)): path.read_bytes() for path in built.rglob("*") if path.is_file()} == wanted


GOOD = {"sluice.json": ["archive"]}
MINE = {"sluice.json": ["mine"]}
MINE_C = HANDLER % "42"


def other_machine(folder):
    library(folder / "handlers" / MACHINE / "mine.so", HANDLER % "42", OTHER)


def local_build(folder):
    library(folder / "handlers/mine.so", HANDLER % "42")


def needs_library(folder):
    library(folder / "x/libnone.so", "int none(void) { return 42; }", MACHINE, "-Wl,-soname,libnone.so.1")
    library(folder / "handlers" / MACHINE / "mine.so", "int none(void);" + HANDLER % "none()", MACHINE, "-L", folder / "x", "-lnone")


def no_license(folder):
    library(folder / "lib" / MACHINE / "libtiny.a", "int tiny(void); int tiny(void) { return 42; }")


TINY = "int tiny(void);" + HANDLER % "tiny()"
# What is in the folder, what else is done to it, variables, and what the refusal says: its words in this order.
REFUSED = {
    "no folder": (None, None, {}, ["DEPLOY=", "is not a folder"]),
    "no configuration": ({"mine.c": MINE_C}, None, {}, ["has no configuration", "sluice.json"]),
    "no JSON": ({"sluice.json": '{"routes": [\n}'}, None, {}, ["sluice.json: line 2:"]),
    "a route without a handler": ({**GOOD, "b.json": ["archive", "mine"]}, None, {}, ["b.json: $.routes[1]", '"mine"', "mine.c", f"handlers/{MACHINE}/mine.so"]),
    "a .so of this machine": (MINE, local_build, {}, ["$.routes[0]", "handlers/mine.so is not taken", f"handlers/{MACHINE}/"]),
    "another architecture": (MINE, other_machine, {}, ["mine.so is built for", f"this zip is for {MACHINE}"]),
    "not a library": ({**MINE, f"handlers/{MACHINE}/mine.so": "text"}, None, {}, ["mine.so is not an ELF file"]),
    "does not compile": ({**MINE, "mine.c": MINE_C + "int f(void) { return x; }\n"}, None, {}, ["mine.c:9:22: error:", "does not build"]),
    "does not compile, in a folder": ({**MINE, "mine/mine.c": MINE_C, "mine/b.c": "int 1;"}, None, {}, ["mine/b.c:1:5: error:", "does not build"]),
    "C++ that does not compile": ({**MINE, "mine.cc": "int f() { return x; }"}, None, {}, ["mine.cc:1:18: error:", "does not build"]),
    "C++ by another name": ({**MINE, "mine.cpp": ORDERS}, None, {}, ["mine.cpp: rename it to .cc"]),
    "no handler": ({**GOOD, "util.c": "int util(void) { return 1; }"}, None, {}, ["util.c: it does not export sluice_handler"]),
    "a function of nobody": ({**MINE, "mine.c": TINY}, None, {}, ["mine.c: nothing in the zip has tiny"]),
    "no such library": ({**MINE, "mine.c": TINY}, None, {"PLUGIN_LIBS": "-ltiny"}, ["-ltiny", f"lib/{MACHINE}/", "license"]),
    "a library without a license": ({**MINE, "mine.c": TINY}, no_license, {"PLUGIN_LIBS": "-ltiny"}, ["libtiny.a goes into the zip", "licenses/libtiny.txt"]),
    "a library that is not there": (MINE, needs_library, {}, ["mine.so needs libnone.so.1", f"lib/{MACHINE}/", "FROM_LAYER=libnone.so.1"]),
    "the name of a built-in": ({**GOOD, "archive.c": MINE_C}, None, {}, ["archive is a built-in handler"]),
    "two of a name": ({**MINE, "mine.c": MINE_C, "handlers/mine.c": MINE_C}, None, {}, ["handlers/mine.c and", "remove one"]),
    "a name with a space": ({**GOOD, "my own.c": MINE_C}, None, {}, ["my own.c: a handler's name has"]),
}


def refused(work, name):
    files, more, variables, words = REFUSED[name]
    folder = work / f"refused/{name}"
    if files is not None:
        folder.mkdir(parents=True)
        write(folder, files)
    if more:
        more(folder)
    status, said = package(folder, work / "refused.zip", **variables)
    assert status != 0 and not (work / "refused.zip").exists(), said
    assert re.search(".*".join(map(re.escape, words)), said, re.S), f"{words} are not in: {said}"


SPARES = {"libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1"}


def libraries(path):
    with zipfile.ZipFile(path) as archive:
        return {name.removeprefix("lib/") for name in archive.namelist() if name.startswith("lib/")}


def a_layer_may_bring_it(work):
    folder = work / "layer"
    folder.mkdir()
    write(folder, {"sluice.json": ["mine", "theirs"]})
    needs_library(folder)
    status, said = package(folder, work / "layer.zip", FROM_LAYER="theirs libnone.so.1")
    assert status == 0, said
    assert SPARES <= libraries(work / "layer.zip"), "a layer's plugin may need them"


def what_nobody_needs_stays_out(work):
    """Of glibc and of gcc's run-time the zip has what is needed, and all of it where nobody knows."""
    for handler, spares in (("archive", set()), ("${WHOSE}", SPARES)):
        folder = work / f"spares {len(spares)}"
        folder.mkdir()
        write(folder, {"sluice.json": [handler]})
        status, said = package(folder, work / "spares.zip")
        assert status == 0 and libraries(work / "spares.zip") & SPARES == spares, said


def main():
    passed = 0
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        folder, zip_path = what_builds_there_builds_here(work)
        sam_takes_the_same(work, folder, zip_path)
        a_layer_may_bring_it(work)
        what_nobody_needs_stays_out(work)
        passed += 4
        for case in REFUSED:
            try:
                refused(work, case)
            except AssertionError as wrong:
                sys.exit(f"{case}: {wrong}")
            passed += 1
    print(f"{passed} passed, 0 failed")


SAM = emulator.sam()
main()
