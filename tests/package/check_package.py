#!/usr/bin/env python3
"""The zips for Lambda: what is in them, that they need nothing from the machine they run on, that every part of others has its
license beside it, and that building them again, in another folder, makes the same bytes."""
import http.client
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
from emulator import TOP

LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "arm64": "AArch64"}
GLIBC = (2, 36)            # Debian 12's, which lies in the zip
KERNEL = (4, 14)           # the oldest that Lambda has had under provided.al2
ZIP_BYTES = (4000 + 160) * 1000  # our own limit, and what PostgreSQL adds: Lambda takes 50 MB


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def readelf(path, *what):
    return run("readelf", "--wide", *what, path)


def version(text):
    return tuple(int(part) for part in re.findall(r"\d+", text))


def contents(architecture, zip_path):
    names = {"bootstrap": 0o755, "sluice.json": 0o644, "archive.json": 0o644}
    names |= {f"lib/{name}": 0o755 for name in (LOADERS[architecture], "libc.so.6", "libgmp.so.10")}
    names |= {name: 0o644 for name in ("LICENSE", "NOTICE", "sbom.cdx.json")}
    with zipfile.ZipFile(zip_path) as archive:
        infos = archive.infolist()
    infos, legal = [i for i in infos if not i.filename.startswith("licenses/")], [i for i in infos if i.filename.startswith("licenses/")]
    assert len(legal) > 15 and {(i.external_attr >> 16) & 0o777 for i in legal} == {0o644}
    assert {info.filename: (info.external_attr >> 16) & 0o777 for info in infos} == names
    assert [info.filename for info in infos] == sorted(names), "the order is not the sorted one"
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert not any(info.extra for info in infos), "owners or times are in it"


def small(_, zip_path):
    assert zip_path.stat().st_size <= ZIP_BYTES, zip_path.stat().st_size


def program(architecture, root):
    """PIE, read-only once it is bound, no stack that runs, its own loader."""
    headers = readelf(root / "bootstrap", "-h", "-l", "-d")
    assert MACHINES[architecture] in headers and "DYN (Position-Independent Executable" in headers
    assert f"[Requesting program interpreter: /var/task/lib/{LOADERS[architecture]}]" in headers
    assert "Library rpath: [/var/task/lib]" in headers, "Lambda's LD_LIBRARY_PATH names /lib64: only an RPATH goes before it"
    assert "RUNPATH" not in headers and "GNU_RELRO" in headers and "BIND_NOW" in headers
    assert re.search(r"GNU_STACK.* RW ", headers), "the stack may be executed"


# The marks that a linked file has only if everything in it has them: for branches, and for return addresses.
MARKS = {"x86_64": {"IBT", "SHSTK"}, "arm64": {"BTI", "PAC"}}
PLACES = {"x86_64": b"\xf3\x0f\x1e\xfa", "arm64": b"\x3f\x23\x03\xd5"}  # endbr64; paciasp
# Debian 12 builds these without (the compiler's own start files on arm64 only).
UNMARKED = {"Scrt1.o", "crti.o", "crtn.o", "libc_nonshared.a", "libcrypto.a", "libssl.a", "libjansson.a", "libz.a", "libdeflate.a"}
UNMARKED_ARM64 = {"crtbeginS.o", "crtendS.o", "libgcc.a"}


def marked(architecture, *files):
    """Which of these objects, or members of an archive, carry both marks: (how many do, of how many)."""
    said = readelf(files[0], "-n", *files[1:])
    found = [set(re.findall(r"\w+", line)) for line in re.findall(r"Properties: .*feature: (.*)", said)]
    return sum(MARKS[architecture] <= words for words in found), max(said.count("File: "), 1)


def hardened(architecture, root):
    """All that is compiled here has the marks; bootstrap as a whole would, but for what Debian built without. No file's relocations
    stay writable, no stack runs, nothing is writable and executable."""
    out = TOP / run("make", "-s", "-f", "scripts/package/Makefile", f"ARCH={architecture}", "folder", cwd=TOP).strip()
    ours = sorted((out / "obj").rglob("*.o"))
    assert len(ours) > 100 and marked(architecture, *ours) == (len(ours), len(ours)), marked(architecture, *ours)
    without = set()
    for path in set(re.findall(r"^LOAD (/.*\.[ao])$", (out / "bootstrap.map").read_text(), re.M)):
        have, of = marked(architecture, path)
        if have < of:
            without.add(pathlib.Path(path).name)
    assert without <= UNMARKED | (UNMARKED_ARM64 if architecture == "arm64" else set()), f"without marks: {without}"
    assert (marked(architecture, root / "bootstrap")[0] == 1) == (not without), "bootstrap's marks are not what its parts say"
    assert (root / "bootstrap").read_bytes().count(PLACES[architecture]) > 1000
    for path in [root / "bootstrap", *(root / "lib").iterdir()]:
        headers = readelf(path, "-l")
        assert "GNU_RELRO" in headers and re.search(r"GNU_STACK.* RW ", headers), path
        assert not re.search(r"LOAD.* RWE ", headers), path


def valid(_, zip_path):
    """Somebody else's tools say the same of the SBOM and the licenses."""
    run(SAM / "bin/python", TOP / "tests/package/legal.py", zip_path)


def whole(architecture, root):
    """Every library that one of the files needs is there, and so is every symbol, in a version that is kept."""
    libraries = {path.name: path for path in (root / "lib").iterdir()}
    defined = set()
    for path in libraries.values():
        defined |= set(re.findall(r"([A-Za-z0-9_]+)@@?([A-Za-z0-9_.]+)$", readelf(path, "--dyn-syms").replace(" (", "\n("), re.M))
    asked = 0
    for path in [root / "bootstrap", *libraries.values()]:
        assert MACHINES[architecture] in readelf(path, "-h"), path
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d")))
        assert needed <= set(libraries), f"{path.name} needs {needed - set(libraries)}"
        for line in readelf(path, "--dyn-syms").splitlines():
            match = re.search(r" UND ([A-Za-z0-9_]+)@([A-Za-z0-9_.]+)", line)
            if match:
                asked += 1
                assert match.groups() in defined, f"{path.name} wants {'@'.join(match.groups())}, which is not in the zip"
                if match.group(2).startswith("GLIBC_2"):
                    assert version(match.group(2)) <= GLIBC, f"{path.name} wants {'@'.join(match.groups())}"
    assert asked > 100, "readelf's output was not understood"


def kernel(_, root):
    note = re.search(r"OS: Linux, ABI: ([0-9.]+)", readelf(root / "lib/libc.so.6", "-n"))
    assert version(note.group(1)) <= KERNEL, note.group(0)


# What the programs contain of others, found by what only they say: component of the SBOM, file, bytes.
TRACES = {"libssl-dev": ("bootstrap", rb"OpenSSL 3\."), "curl": ("bootstrap", rb"An unknown option was passed in to libcurl"), "libjansson-dev": ("bootstrap", rb"json_dumps"),
          "postgresql-15": ("bootstrap", rb"PGSERVICEFILE"),
          "zlib1g-dev": ("bootstrap", rb"inflate 1\.2"), "libgmp10": ("lib/libgmp.so.10", rb"GNU MP"),
          "libc6": ("lib/libc.so.6", rb"GNU C Library")}
STATIC = {"libc6-dev", "libdeflate-dev", "libgcc-s1"}  # parts of bootstrap that leave no text of their own


def licensed(architecture, root):
    """The SBOM names what is there and nothing else; each part has its copyright file, and each license that one names its text."""
    bom = json.loads((root / "sbom.cdx.json").read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    release = (TOP / "VERSION").read_text().strip()
    assert bom["metadata"]["component"]["version"] == release and (f"sluice/{release} ({commit()})".encode() in (root / "bootstrap").read_bytes())
    parts = {part["name"]: part for part in bom["components"]}
    assert set(parts) == set(TRACES) | STATIC, set(parts) ^ (set(TRACES) | STATIC)
    archive = pathlib.Path(run("make", "-s", "-f", "scripts/package/Makefile", "where", cwd=TOP).strip())
    taken = dict(line.split() for line in (archive / "taken.txt").read_text().splitlines())
    for name, part in parts.items():
        copyright = (root / "licenses" / f"{name}.copyright").read_text()
        assert len(copyright) > 1000, f"{name}: its copyright file is too short to be one"
        assert re.fullmatch(r"[0-9a-f]{64}", part["hashes"][0]["content"]) and part["licenses"][0]["expression"]
        assert part["version"] == taken.get(name, taken.get(f"src:{name}")), f"{name}: {part['version']} is not what was taken"
        assert part["purl"].startswith(f"pkg:deb/debian/{name}@"), part["purl"]
        assert "+" not in part["purl"]
        for text in re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", copyright):
            assert (root / "licenses" / text).stat().st_size > 1000, f"{name}: the text of {text} is missing"
        if name in TRACES:
            file, trace = TRACES[name]
            assert re.search(trace, (root / file).read_bytes()), f"{file} does not look like {name}: is it there at all?"
    for name in ("LICENSE", "NOTICE"):
        assert (root / name).read_bytes() == (TOP / name).read_bytes()
    assert {path.name.split(".")[0].removeprefix("lib") for path in (root / "lib").iterdir()} <= {
        "c", "m", "dl", "pthread", "rt", "ld-linux-x86-64", "ld-linux-aarch64", "gcc_s", "gmp"}, "a library that no part of the SBOM stands for"


def jansson_for_plugins(_, root):
    symbols = readelf(root / "bootstrap", "--dyn-syms")
    exported = set(re.findall(r"GLOBAL +DEFAULT +\d+ ([a-z_0-9]+)$", symbols, re.M))
    assert {"json_delete", "json_object_get", "json_dumps"} <= exported, exported
    assert all(name.startswith("json_") for name in exported), exported


def commit():
    return run("git", "rev-parse", "--short=12", "HEAD", cwd=TOP).strip() if (TOP / ".git").exists() else "unknown"


def reproducible(zips):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "elsewhere" / "sluice"
        for name in run(TOP / "scripts/files.sh").splitlines():
            if (TOP / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TOP / name, copy / name)
        environment = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "COMMIT": commit()}
        subprocess.run(["bash", "-c", "umask 077; make -s package"], cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)
        for path in zips:
            assert (copy / "build" / path.name).read_bytes() == path.read_bytes(), f"{path.name}: a second build differs"


def sam_build(folder, *more):
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"}
    subprocess.run([SAM / "bin/sam", "build", "--build-dir", folder, *more], cwd=TOP, env=environment, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return pathlib.Path(folder) / "SluiceFunction"


def sam_builds_the_same(architecture, root):
    """What `sam build` hands to `sam deploy` are the files of the zip, of the architecture that the parameter says."""
    with tempfile.TemporaryDirectory() as folder:
        built = sam_build(folder, "--parameter-overrides", f"Architecture={architecture}")
        for function in (built, built.parent / "SeedFunction"):
            assert files(function) == files(root), f"{function.name}: {sorted(files(function))} against {sorted(files(root))}"


def sam_uploads_the_same(zips):
    """The first half of `sam deploy`, into moto's S3: what Lambda would unpack are the arm64 zip's files with their modes."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        sam_build(work / "built")
        emulator.run(TOP / "tests/services/start.sh", work / "services", "moto")
        try:
            services = dict(line.split("=", 1) for line in (work / "services/env").read_text().splitlines())
            environment = {**os.environ, **services, "SAM_CLI_TELEMETRY": "0"}
            store = http.client.HTTPConnection(services["MOTO_ENDPOINT"].removeprefix("http://"), timeout=emulator.PATIENCE_S)
            emulator.ask(store, "PUT", "/uploads")
            emulator.run(SAM / "bin/sam", "package", "--template-file", work / "built/template.yaml", "--s3-bucket", "uploads",
                         "--output-template-file", work / "packaged.yaml", env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            key = re.search(r"CodeUri: s3://uploads/(\S+)", (work / "packaged.yaml").read_text()).group(1)
            (work / "uploaded.zip").write_bytes(emulator.ask(store, "GET", f"/uploads/{key}"))
        finally:
            emulator.run(TOP / "tests/services/stop.sh", work / "services")
        assert members(work / "uploaded.zip") == members(zips["arm64"])


def members(zip_path):
    with zipfile.ZipFile(zip_path) as archive:
        return {info.filename: ((info.external_attr >> 16) & 0o777, archive.read(info)) for info in archive.infolist()}


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def takes_a_handler_in_cpp(architecture):
    """By the cross compiler, too."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "sluice.json").write_text(json.dumps({"routes": [{"name": "orders", "handler": "orders", "on_failure": "report"}]}))
        (folder / "orders.cc").write_text("""
#include <sluice/handler.h>
#include <string>
static std::string last;
static sl_status work(void *, sl_slice *, sl_error *) { last = std::to_string(42); return last == "42" ? SL_OK : SL_FATAL; }
extern "C" {
extern SL_EXPORT const sl_handler SL_HANDLER;
const sl_handler SL_HANDLER = {SL_HANDLER_ABI, "orders", "a test", 0, 0, 0, nullptr, nullptr, work};
}
""")
        run("make", "-s", f"package-{architecture}", f"DEPLOY={folder}", f"ZIP={folder}/own.zip", cwd=TOP)
        with zipfile.ZipFile(folder / "own.zip") as archive:
            assert "handlers/orders.so" in archive.namelist()


def main():
    subprocess.run(["make", "-s", "package"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    passed = 0
    zips = {architecture: TOP / "build" / f"sluice-{architecture}.zip" for architecture in LOADERS}
    for architecture, zip_path in zips.items():
        with tempfile.TemporaryDirectory() as folder:
            run("unzip", "-q", zip_path, "-d", folder)
            for case, argument in [(contents, zip_path), (small, zip_path), (valid, zip_path), *((case, pathlib.Path(folder)) for case in
                                   (program, hardened, whole, kernel, licensed, jansson_for_plugins, sam_builds_the_same))]:
                try:
                    case(architecture, argument)
                except AssertionError as wrong:
                    sys.exit(f"{architecture}: {case.__name__}: {wrong}")
                passed += 1
        takes_a_handler_in_cpp(architecture)
        passed += 1
    sam_uploads_the_same(zips)
    reproducible(zips.values())
    print(f"{passed + 2} passed")


SAM = emulator.sam()
with tempfile.TemporaryDirectory() as place:  # SAM leaves folders
    os.environ["TMPDIR"] = tempfile.tempdir = place
    main()
