#!/usr/bin/env python3
"""`make release`: two builds in two folders are the same bytes; the programs run with an older glibc than any that they were built
with; the tarball in a root of Debian 11's libc alone, the package in a bare Debian 12, both images from their files alone (the
function's under AWS's emulator), the other architecture under qemu; sums, provenance, SBOMs and licenses say what is there."""
import gzip
import hashlib
import io
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
import time
import zipfile

import emulator

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HOST = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]
MACHINES = {"x86_64": ("x86_64", "amd64"), "arm64": ("aarch64", "arm64")}
QEMU = {"arm64": "qemu-aarch64-static", "x86_64": "qemu-x86_64-static"}
OLDEST = (2, 26)
IS_ROOT = os.geteuid() == 0
passed = 0


def check(name, ok, detail=""):
    global passed
    if not ok:
        sys.exit(f"FAIL {name}: {str(detail)[-2500:]}")
    passed += 1


def run(*args, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=1800, **more)


def built(folder, out, archs):
    done = run("make", "--no-print-directory", "-s", "release", "SNAPSHOT=1", f"RELEASE={out}", f"ARCHS={archs}", cwd=folder)
    check(f"it is built in {folder.name}", done.returncode == 0, done.stdout + done.stderr)
    return {path.name: path.read_bytes() for path in pathlib.Path(out).iterdir()}


def difference(work, name, one, other):
    """What is in the one and not in the other, of a package or a tarball."""
    if one == other:
        return ""
    said = []
    for place, data in (("one", one), ("other", other)):
        folder = work / f"differs-{place}"
        folder.mkdir()
        (folder / name).write_bytes(data)
        unpack = ["dpkg-deb", "-R", name, "."] if name.endswith(".deb") else ["tar", "-xzf", name] if name.endswith(".gz") else ["unzip", "-q", name]
        run(*unpack, cwd=folder)
        (folder / name).unlink()
        said.append({(str(path.relative_to(folder)), path.lstat().st_mode, path.lstat().st_mtime, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
                     for path in folder.rglob("*")})
    return sorted(said[0] ^ said[1])[:8] or "the same files, packed differently"


def layers(image):
    with tarfile.open(fileobj=io.BytesIO(image)) as tar:
        return {m.name for m in tar if m.name.startswith("blobs/") and m.size > 20000}


def copy_of_the_tree(folder):
    """The same commit and the same files, elsewhere."""
    done = run("git", "clone", "-q", "--shared", TOP, folder)
    check("the tree is cloned", done.returncode == 0, done.stderr)
    for name in run("git", "ls-files", "-z", cwd=folder).stdout.split("\0"):
        if name:
            (folder / name).unlink()
    for name in run("scripts/files.sh", cwd=TOP).stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(TOP / name, folder / name)
    # Man page and completion come from this machine's own build of the command, which need not be made twice.
    others = ("package", "check", "clang", "asan", "compat", "tests", "bench", "image", "release", "libfuzzer", "steps")
    if (TOP / "build").is_dir():
        shutil.copytree(TOP / "build", folder / "build", symlinks=True, ignore=lambda place, names: others if pathlib.Path(place) == TOP / "build" else ())


def refusals(folder):
    (folder / "VERSION").write_text("99.0.0\n")
    done = run("scripts/release/release.sh", "out", cwd=folder)
    check("a tree with changes is refused", done.returncode == 1 and "has changes" in done.stderr, done.stderr)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false"]
    run(*git, "add", "-A", cwd=folder)
    done = run(*git, "commit", "-q", "-m", "x", cwd=folder)
    check("it is committed", done.returncode == 0, done.stderr)
    done = run("scripts/release/release.sh", "out", cwd=folder)
    check("so is a commit without the tag", done.returncode == 1 and "no tag v99.0.0" in done.stderr, done.stderr)


def named(files, ending):
    name, = [name for name in files if name.endswith(ending)]
    return name


def unpacked(data, folder):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        check("its files are root's, of one time, and none may be changed by others",
              len({m.mtime for m in members}) == 1 and not any(m.uid or m.mode & 0o6022 & ~0o1000 for m in members if not m.issym() and not m.name.endswith("tmp")),
              [(m.name, oct(m.mode)) for m in members][:5])
        tar.extractall(folder)


def symbols(program, what):
    """The newest glibc that a program asks for, and what it is linked to."""
    said = run("readelf", "-W", "--version-info", "--dynamic", program).stdout
    newest = max(tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", said))
    check(f"{what}: glibc {OLDEST} is enough", newest <= OLDEST, newest)
    # A variable of glibc's that has two names (environ) must not be copied: see the Makefile.
    copied = set(re.findall(r"_COPY .* ([a-z_]+)@", run("readelf", "-rW", program).stdout))
    check(f"{what}: copies no variable but the streams'", copied <= {"stdin", "stdout", "stderr"}, copied)
    shown = set(re.findall(r" GLOBAL +DEFAULT +[0-9]+ ([A-Za-z_0-9]+)", run("readelf", "-W", "--dyn-syms", program).stdout))
    odd = {name for name in shown if not name.startswith("json_")} - {"main", "stdin", "stdout", "stderr", "_init", "_fini", "__bss_start", "_edata", "_end", "_start", "_IO_stdin_used", "__data_start", "data_start", "__libc_csu_init", "__libc_csu_fini"}
    check(f"{what}: shows plugins jansson alone", {"json_loads", "json_object_get"} <= shown and not odd, sorted(odd)[:20])
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
    check(f"{what}: needs glibc alone", all(re.match(r"(libc|libm|libdl|libpthread|librt|libresolv|ld-linux-.*)\.so", name) for name in needed), needed)


def chroot(root, *args, user=None, **env):
    inside = ["unshare", *([] if IS_ROOT else ["-r"]), "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root}/proc", "/usr/sbin/chroot",
              *([f"--userspec={user}"] if user and IS_ROOT else []), root]
    return run(*inside, *args, env={"PATH": "/usr/bin:/usr/sbin:/bin:/sbin", "TMPDIR": "/tmp", **env})


def furnished(root):
    for place in ("dev", "proc", "tmp"):
        (root / place).mkdir(exist_ok=True, parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "dev/null").touch(mode=0o666)  # a container has a real one


def old_root(work):
    """A root with Debian 11's libc and nothing else."""
    root, apt = work / "old", work / "apt"
    apt.mkdir()
    script = f'. scripts/package/apt.sh; SUITE=bullseye use_apt {apt}; cd {work}; apt-get download -qq libc6:{MACHINES[HOST][1]}'
    done = run("bash", "-c", script, cwd=TOP)
    package = next(iter(work.glob("libc6_2.31*.deb")), None)
    check("Debian 11's libc is fetched", package is not None, done.stdout + done.stderr)
    run("dpkg-deb", "-x", package, root)
    furnished(root)
    return root


def tarballs(files, work):
    trees = {}
    for arch, (machine, _) in MACHINES.items():
        unpacked(files[named(files, f"linux-{machine}.tar.gz")], work / "tar")
        tree, = (work / "tar").glob(f"sluice-*-linux-{machine}")
        trees[arch] = tree
        for name in ("lib/sluice/sluice", "lib/sluice/bootstrap"):
            symbols(tree / name, f"{machine}'s {name}")
        whole = {"bin/sluice", "lib/libsluice-runtime.a", "include/sluice/handler.h", "lib/pkgconfig/sluice.pc", "share/man/man1/sluice.1", "share/sluice/sluice.schema.json",
                 "share/bash-completion/completions/sluice", "share/zsh/site-functions/_sluice", "share/doc/sluice/README.md", "share/doc/sluice/docs/CONFIG.md"}
        check(f"{machine}'s tarball is whole", all((tree / name).exists() for name in whole), [name for name in whole if not (tree / name).exists()])
        folder = work / f"legal-{arch}.zip"
        with zipfile.ZipFile(folder, "w") as archive:
            for path in (tree / "share/doc/sluice").rglob("*"):
                if path.is_file():
                    archive.write(path, path.relative_to(tree / "share/doc/sluice"))
        done = run(emulator.sam() / "bin/python", "tests/package/legal.py", folder, cwd=TOP)
        check(f"{machine}: the licenses of all parts are there", done.returncode == 0, done.stdout + done.stderr)
        parts = {part["name"] for part in json.loads((tree / "share/doc/sluice/sbom.cdx.json").read_text())["components"]}
        check(f"{machine}: the SBOM has all parts", {"curl", "libssl-dev", "libsqlite3-dev", "libmicrohttpd", "postgresql-15", "libjansson-dev", "libgmp-dev"} <= parts, parts)

    # From the file to the first result, in a root that has an old libc alone.
    root = old_root(work)
    begun = time.monotonic()
    unpacked(files[named(files, f"linux-{MACHINES[HOST][0]}.tar.gz")], root)
    place = next(root.glob("sluice-*"))
    (root / "sluice").symlink_to(place.name)
    done = chroot(root, "/sluice/bin/sluice", "replay", "--config", "/sluice/share/sluice/examples/orders/sluice.json", "/sluice/share/sluice/examples/capture/orders.jsonl.gz",
                  OUT="/tmp/out")
    took = time.monotonic() - begun
    check("with Debian 11's libc: the first replay", done.returncode == 0 and "records in          3773" in done.stdout, done.stdout + done.stderr)
    check("in less than ten seconds after unpacking", took < 10 * float(os.environ.get("SLOWER", 3)), took)
    print(f"release: from the tarball to the first replay: {took:.1f} s")

    # A plugin that the user's own compiler made, by the tarball's own header.
    flags = run("pkg-config", "--cflags", "sluice", env={**os.environ, "PKG_CONFIG_PATH": str(trees[HOST] / "lib/pkgconfig")}).stdout.split()
    done = run("gcc", "-std=c11", "-shared", "-fPIC", *flags, "-o", trees[HOST] / "lib/sluice/handlers/status_change.so", TOP / "examples/status_change.c")
    check("a plugin is compiled against it", flags and done.returncode == 0, done.stderr)
    config = work / "plugin.json"
    config.write_text(json.dumps({"on_failure": "report", "routes": [{"name": "s", "handler": "status_change", "text": "changed", "to": f"jsonl:{work}/changes.jsonl"}]}))
    done = run(trees[HOST] / "bin/sluice", "check", config)
    check("and loaded from where the tarball has handlers", done.returncode in (0, 1) and "status_change" in done.stdout, done.stdout + done.stderr)

    other = next(arch for arch in MACHINES if arch != HOST)
    qemu = shutil.which(QEMU[other])
    sysroot = run("make", "--no-print-directory", "-s", "packaged-sysroot", f"ARCH={other}", cwd=TOP).stdout.strip()
    # (What replay starts would be this machine's to run.)
    done = run(qemu, "-L", sysroot, trees[other] / "lib/sluice/sluice", "decode", "share/sluice/examples/capture/orders.jsonl.gz", cwd=trees[other])
    check(f"{other}: decodes under qemu", done.returncode == 0 and done.stdout.count("\n") == 3773, done.stdout[-300:] + done.stderr)
    done = run(qemu, "-L", sysroot, trees[other] / "lib/sluice/sluice", "test", "share/sluice/examples/shop/tests", cwd=trees[other])
    check(f"{other}: runs cases under qemu", done.returncode == 0, done.stdout + done.stderr)


def package(files, work):
    own = work / "lintian"
    own.mkdir()
    for _, debian in MACHINES.values():
        (work / f"{debian}.deb").write_bytes(files[named(files, f"-1_{debian}.deb")])
        done = run("lintian", "--fail-on", "error,warning", *(["--allow-root"] if IS_ROOT else []), work / f"{debian}.deb",
                   env={**os.environ, "TMPDIR": str(own)})  # (where it leaves what it did not clean)
        check(f"lintian says nothing of {debian}'s", done.returncode == 0 and not re.search("^[EW]:", done.stdout, re.M), done.stdout + done.stderr)
    if not IS_ROOT:
        print("release: the package is not installed: that takes root")
        return
    root = work / "bare"
    done = run("debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", root, os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org") + "/debian")
    check("there is a bare Debian", done.returncode == 0, done.stdout + done.stderr)
    shutil.copy(work / f"{MACHINES[HOST][1]}.deb", root / "sluice.deb")
    before = {str(path) for path in (root / "usr").rglob("*sluice*")}
    done = chroot(root, "dpkg", "-i", "/sluice.deb")
    check("the package is installed there", done.returncode == 0, done.stdout + done.stderr)
    done = chroot(root, "sluice", "replay", "--config", "/usr/share/sluice/examples/orders/sluice.json", "/usr/share/sluice/examples/capture/orders.jsonl.gz", OUT="/tmp/out")
    check("and replays", done.returncode == 0 and "records in          3773" in done.stdout, done.stdout + done.stderr)
    done = chroot(root, "dpkg", "--purge", "sluice")
    after = {str(path) for path in (root / "usr").rglob("*sluice*")}
    check("and goes without a trace", done.returncode == 0 and before == after, after - before)


def layout(data, folder):
    """Every image of an OCI archive: (architecture, its configuration, its files in a root)."""
    folder.mkdir()
    (folder / "oci.tar").write_bytes(data)
    found = {}
    for arch, (_, oci) in MACHINES.items():
        done = run("skopeo", "--override-arch", oci, "copy", "-q", "--insecure-policy", f"oci-archive:{folder}/oci.tar", f"dir:{folder}/{arch}")
        check(f"skopeo takes {oci}'s", done.returncode == 0, done.stderr)
        manifest = json.loads((folder / arch / "manifest.json").read_text())
        config = json.loads((folder / arch / manifest["config"]["digest"].removeprefix("sha256:")).read_text())
        check("it is for that architecture", config["architecture"] == oci, config)
        root = folder / f"root-{arch}"
        for layer, diff in zip(manifest["layers"], config["rootfs"]["diff_ids"]):
            blob = (folder / arch / layer["digest"].removeprefix("sha256:")).read_bytes()
            check("a digest and a size", hashlib.sha256(blob).hexdigest() == layer["digest"][7:] and len(blob) == layer["size"], layer)
            check("a layer's diff_id", f"sha256:{hashlib.sha256(gzip.decompress(blob)).hexdigest()}" == diff, diff)
            with tarfile.open(fileobj=io.BytesIO(blob)) as tar:
                members = tar.getmembers()
                check("nothing is in a layer that should not be", all(m.isfile() or m.isdir() or m.issym() for m in members) and
                      not any(m.mode & 0o6000 or (m.mode & 0o002 and m.name != "tmp" and not m.issym()) for m in members), [m.name for m in members])
                check("root owns all but the data", {m.name for m in members if m.uid} <= {"data"})
                tar.extractall(root)
        check("there is no shell", not any((root / p).exists() for p in ("usr/bin/sh", "usr/bin/bash", "usr/bin/busybox", "bin/sh")))
        found[arch] = (config["config"], root)
    return found


def record(n):
    image = {"PK": {"S": f"k{n}"}, "n": {"N": str(n)}}
    return {"eventID": f"{n:032x}", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
            "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2026-11-14T00:04:06.388",
            "dynamodb": {"ApproximateCreationDateTime": 1795208640, "Keys": {"PK": image["PK"]}, "NewImage": image, "SequenceNumber": str(10**20 + n),
                         "SizeBytes": 10, "StreamViewType": "NEW_IMAGE"}}


def command_image(files, work):
    config, root = layout(files[named(files, "-command-oci.tar")], work / "image")[HOST]
    check("the user is not root", config["User"] == "65532:65532", config)
    check("it stops by SIGTERM", config["StopSignal"] == "SIGTERM" and config["Entrypoint"] == ["/usr/bin/sluice"], config)
    check("its parts have their licenses", (root / "usr/share/doc/libc6/copyright").exists() and "libc6 " in (root / "usr/share/doc/packages.txt").read_text())
    furnished(root)
    (root / "data/sluice.json").write_text(json.dumps({"on_failure": "report", "report_batch_item_failures": True, "routes": [
        {"name": "copy", "handler": "replicate", "to": "sqlite:/data/copy.db?table=t"}]}))
    (root / "data/in.json").write_text(json.dumps({"Records": [record(n) for n in range(7)]}))
    if IS_ROOT:
        subprocess.run(["chown", "-R", "65532:65532", root / "data"], check=True)
    done = chroot(root, "/usr/bin/sluice", "--help", user="65532:65532")
    check("it runs", done.returncode == 0 and "tail" in done.stdout, done.stdout + done.stderr)
    done = chroot(root, "/usr/bin/sluice", "replay", "--config", "/data/sluice.json", "--log", "/data/log", "/data/in.json", user="65532:65532")
    check("its sandbox runs", done.returncode == 0 and "INSERT 7" in done.stdout, done.stdout + done.stderr)


def function_image(files, work):
    for arch, (config, root) in layout(files[named(files, "-lambda-oci.tar")], work / "function").items():
        check("Lambda starts bootstrap", config["Entrypoint"] == ["/var/runtime/bootstrap"] and config["WorkingDir"] == "/var/task", config)
        # As a layer above, or a zip, would bring it.
        (root / "var/task/sluice.json").write_text(json.dumps({"on_failure": "report", "report_batch_item_failures": True, "routes": [
            {"name": "a", "handler": "archive", "to": "file:/tmp/archive"}]}))
        furnished(root)
        become, qemu = [] if IS_ROOT else ["unshare", "-r"], []
        if arch != HOST:
            shutil.copy(shutil.which(QEMU[arch]), root / "qemu")
            qemu = ["/qemu"]
        environment = {key: value for key, _, value in (row.partition("=") for row in config["Env"])}
        # (Its PATH has no programs but its own.)
        inside = ["env", *[f"{key}={environment[key]}" for key in ("LAMBDA_TASK_ROOT", "AWS_CA_BUNDLE")], *become, "/usr/sbin/chroot", root, *qemu, *config["Entrypoint"],
                  *config["Cmd"]]
        answers, output = emulator.invoke(work, inside, {"AWS_REGION": "us-east-1", "AWS_LAMBDA_FUNCTION_NAME": "f"},
                                          [json.dumps({"Records": [record(n) for n in range(5)]}).encode()])
        check(f"{arch}'s image answers AWS's emulator", answers == [b'{"batchItemFailures":[]}'], (answers, output))
        lines = [line for path in (root / "tmp/archive").rglob("*.gz") for line in gzip.decompress(path.read_bytes()).splitlines()]
        check("and has archived what came", len(lines) == 5, lines)


def papers(files):
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    check("the sums are those of all other files", {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != "SHA256SUMS"} == sums, sums)
    statement = json.loads(files[named(files, ".intoto.json")])
    subjects = {row["name"]: row["digest"]["sha256"] for row in statement["subject"]}
    check("the provenance is of all files", subjects == {name: digest for name, digest in sums.items() if not name.endswith(".intoto.json")}, subjects)
    predicate = statement["predicate"]
    materials = predicate["buildDefinition"]["resolvedDependencies"]
    head = run("git", "rev-parse", "HEAD", cwd=TOP).stdout.strip()
    check("it names the commit", materials[0]["digest"] == {"gitCommit": head} and statement["predicateType"] == "https://slsa.dev/provenance/v1", materials[0])
    check("and what was taken of others", any("curl_" in row["uri"] for row in materials) and any("ziglang" in row["uri"] for row in materials) and
          all(re.fullmatch("[0-9a-f]{64}", row["digest"].get("sha256", "0" * 64)) for row in materials), materials)


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        files = built(TOP, work / "release", "x86_64 arm64")
        other = work / "elsewhere"
        copy_of_the_tree(other)
        again = built(other, work / "again", HOST)
        for file, data in again.items():
            if file.endswith("oci.tar"):
                check(f"{file}'s layers are the same from another folder", layers(data) and layers(data) <= layers(files[file]))
            elif not re.search("intoto|SHA256SUMS", file):
                check(f"{file} is the same from another folder", files[file] == data, difference(work, file, files[file], data))
        done = run("make", "--no-print-directory", "-s", "image", f"ARCHS={HOST}", cwd=other)
        images = {path.name: path.read_bytes() for path in (other / "build/image").iterdir()}
        check("make image makes the two images alone", done.returncode == 0 and len(images) == 2 and all(layers(data) <= layers(files[name]) for name, data in images.items()),
              done.stdout + done.stderr)
        refusals(other)
        papers(files)
        tarballs(files, work)
        package(files, work)
        command_image(files, work)
        function_image(files, work)
    print(f"{passed} passed, 0 failed")


main()
