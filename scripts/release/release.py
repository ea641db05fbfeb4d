#!/usr/bin/env python3
"""What a release has, from what `make package` and `make command-ARCH` built: tarballs and Debian packages of the command, the
zips for Lambda, two images, the source, SBOMs, SHA256SUMS and its provenance. The same commit makes the same bytes.

scripts/release/release.py OUT [PART…], PARTs are tarball, deb, zip, image, lambda-image, cdk, templates and source; all of them by default.
In the environment: VERSION, REVISION (the whole commit), NAME (the version in names of files), TIME (of the commit), and for each architecture
COMMAND_arch (a folder), TASK_arch (with the zip's SBOM), SYSROOT_arch, ZIP_arch; ARCHIVE, the folder of Debian's packages;
ARCHS, those to make."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from files import Image, Tree, digest, packed, renamed

ENV = os.environ
VERSION, COMMIT, NAME, TIME = ENV["VERSION"], ENV["REVISION"], ENV["NAME"], int(ENV["TIME"])
# By the names of our packages: what `uname -m`, Debian and OCI call it, where its libraries are, and its loader.
ARCHITECTURES = {"x86_64": ("x86_64", "amd64", "x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2"),
                 "arm64": ("aarch64", "arm64", "aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1")}
GLIBC = "2.26"
SUMMARY = "consumer framework for DynamoDB Streams"
MAINTAINER = "The Sluice authors <maintainers@sluice.invalid>"
NOBODY = 65532  # as in other images without root
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def run(*args, **more):
    return subprocess.run(args, check=True, capture_output=True, **more).stdout


def installed(arch):
    """What `make install` makes of this architecture's programs, below /usr, with the documents and the examples."""
    tree = Tree(TIME)
    with tempfile.TemporaryDirectory() as folder:
        run("make", "--no-print-directory", "-s", "install", f"DESTDIR={folder}", "PREFIX=/usr", "PC_PREFIX=$${pcfiledir}/../..", f"FROM={ENV[f'COMMAND_{arch}']}")
        tree.take(f"{folder}/usr", "")
    for name in run("git", "ls-files", "examples", "README.md", "CHANGELOG.md", "docs/*.md", "docs/*.svg", "deploy/sluice-tail.service").decode().split():
        if name.startswith("examples/"):
            tree.take(name, f"share/sluice/{name}")
        elif name.endswith(".service"):
            tree.add("share/sluice/sluice-tail.service", pathlib.Path(name).read_bytes().replace(b"/usr/local/bin/", b"/usr/bin/"))
        else:
            tree.take(name, f"share/doc/sluice/{name}")
    tree.take(f"{ENV[f'COMMAND_{arch}']}/about/licenses", "share/doc/sluice/licenses")
    tree.take(f"{ENV[f'COMMAND_{arch}']}/about/sbom.cdx.json", "share/doc/sluice/sbom.cdx.json")
    return tree


def tarball(arch, tree):
    top = f"sluice-{NAME}-linux-{ARCHITECTURES[arch][0]}"
    return {f"{top}.tar.gz": packed(tree.below(top).tar())}


def source():
    top = f"sluice-{NAME}"
    return {f"{top}.tar.gz": packed(run("git", "archive", "--format=tar", f"--prefix={top}/", COMMIT))}


def construct():
    """The CDK's construct, as npm packs it."""
    with tempfile.TemporaryDirectory() as folder:
        run("scripts/release/cdk.sh", folder)
        file, = pathlib.Path(folder).glob("*.tgz")
        return {f"sluice-cdk-{NAME}.tgz": file.read_bytes()}


def templates():
    """For whoever has neither SAM nor the CDK."""
    module = Tree(TIME)
    for name in run("git", "ls-files", "deploy/terraform", "deploy/cloudformation").decode().split():
        module.take(name, name.removeprefix("deploy/"))
    top = f"sluice-{NAME}-terraform"
    return {f"sluice-{NAME}-cloudformation.json": pathlib.Path("deploy/cloudformation/sluice.json").read_bytes(), f"{top}.tar.gz": packed(module.below(top).tar())}


CONTROL = """\
Package: sluice
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: libc6 (>= {glibc}), ca-certificates
Suggests: sqlite3
Section: database
Priority: optional
Description: {summary}
 Sluice reads the changes of a DynamoDB table and turns them into an archive
 in S3, a copy of the table, its items under other keys, totals, a search
 index or messages, as a Lambda function and as this command, which runs the
 same function under the rules of Lambda's event source mapping.
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: sluice

Files: *
Copyright: 2026 The Sluice authors
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/sluice/*
Copyright: the authors named in /usr/share/doc/sluice/licenses
License: parts-of-others
 The programs hold parts of others (curl, OpenSSL, jansson, zlib, libdeflate,
 GMP, SQLite, libpq, libmicrohttpd), from the revisions that
 /usr/share/doc/sluice/sbom.cdx.json names. Their licenses are in
 /usr/share/doc/sluice/licenses. The released source builds the programs with
 other versions of them.
"""

# One file for every distribution since 2018: that is why it has its libraries inside. And it is no package of Debian's, where a first
# version answers a request.
OVERRIDES = """\
sluice: embedded-library
sluice: initial-upload-closes-no-bugs
"""


def deb(arch, tree):
    machine, debian, _, _ = ARCHITECTURES[arch]
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name) / "root"
        system = tree.below("usr")
        members = dict(system.members)
        for path, (member, data) in members.items():
            if path.startswith("usr/share/man/") and member.isreg():
                del system.members[path]
                system.add(f"{path}.gz", packed(data))
            # Debian's pkg-config looks there for every architecture.
            if path.startswith("usr/lib/pkgconfig"):
                del system.members[path]
                system.members[path.replace("lib", "share", 1)] = renamed(member, path.replace("lib", "share", 1)), data
            # To read and to copy: they ask for Python, and the package does not.
            if path.startswith("usr/share/sluice/examples/") and member.isreg():
                member.mode = 0o644
        # Debian has its texts where it has those of all packages.
        for path in ("usr/share/doc/sluice/LICENSE", "usr/share/doc/sluice/CHANGELOG.md"):
            del system.members[path]
        system.add("usr/share/doc/sluice/changelog.gz", packed(pathlib.Path("CHANGELOG.md").read_bytes()))
        version = NAME.replace("-", "~") + "-1"
        when = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(TIME))
        entry = f"sluice ({version}) unstable; urgency=medium\n\n  * {NAME}: see changelog.gz.\n\n -- {MAINTAINER}  {when}\n"
        system.add("usr/share/doc/sluice/changelog.Debian.gz", packed(entry.encode()))
        system.add("usr/share/doc/sluice/copyright", COPYRIGHT.encode())
        system.add("usr/share/lintian/overrides/sluice", OVERRIDES.encode())
        system.write(root)
        (root / "DEBIAN").mkdir()
        size = sum(-(-len(data) // 1024) for _, data in system.members.values())
        (root / "DEBIAN/control").write_text(CONTROL.format(version=version, maintainer=MAINTAINER, architecture=debian, size=size, glibc=GLIBC, summary=SUMMARY))
        sums = [f"{__import__('hashlib').md5(data).hexdigest()}  {path}\n" for path, (member, data) in sorted(system.members.items()) if member.isreg()]
        (root / "DEBIAN/md5sums").write_text("".join(sums))
        for place in [root, *root.rglob("*")]:
            os.utime(place, (TIME, TIME), follow_symlinks=False)
            if place.is_dir():
                place.chmod(0o755)
        file = pathlib.Path(name) / "it.deb"
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", str(root), str(file), env={**ENV, "SOURCE_DATE_EPOCH": str(TIME)})
        return {f"sluice_{version}_{debian}.deb": file.read_bytes()}


def ground(arch):
    """What an image stands on: glibc, CA certificates and two users. No shell."""
    _, _, triplet, loader = ARCHITECTURES[arch]
    sysroot, tree = pathlib.Path(ENV[f"SYSROOT_{arch}"]), Tree(0)
    for name in ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2", "libgcc_s.so.1"):
        place = next(p for p in (sysroot / f"lib/{triplet}/{name}", sysroot / f"usr/lib/{triplet}/{name}") if p.exists())
        tree.add(f"usr/lib/{triplet}/{name}", place.read_bytes(), 0o755)
    tree.add(f"usr/{loader}", (sysroot / f"lib/{triplet}/{loader.split('/')[1]}").read_bytes(), 0o755)
    for name in ("bin", "lib", "lib64"):
        tree.folder(f"usr/{name}")
        tree.add(name, link=f"usr/{name}")
    for name in ("libc6", "gcc-12-base"):
        tree.take(sysroot / f"usr/share/doc/{name}/copyright", f"usr/share/doc/{name}/copyright")
    for name in ("LGPL-2.1", "GPL-3", "GPL-2", "LGPL-3"):
        tree.take((sysroot / f"usr/share/common-licenses/{name}").resolve(), f"usr/share/common-licenses/{name}")
    tree.take(BUNDLE, BUNDLE.lstrip("/"))
    tree.take("/usr/share/doc/ca-certificates/copyright", "usr/share/doc/ca-certificates/copyright")
    taken = dict(line.split() for line in pathlib.Path(ENV["ARCHIVE"], "taken.txt").read_text().splitlines())
    parts = [f"{name} {taken[name]}" for name in ("libc6", "libgcc-s1")]
    parts.append(run("dpkg-query", "-W", "-f", "ca-certificates ${Version}", "ca-certificates").decode())
    tree.add("usr/share/doc/packages.txt", "".join(f"{part}\n" for part in sorted(parts)).encode())
    tree.add("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nsluice:x:{NOBODY}:{NOBODY}:sluice:/data:/sbin/nologin\n".encode())
    tree.add("etc/group", f"root:x:0:\nsluice:x:{NOBODY}:\n".encode())
    tree.add("etc/nsswitch.conf", b"hosts: files dns\n")
    tree.folder("tmp", 0o1777)
    return tree


LABELS = {"org.opencontainers.image.title": "sluice", "org.opencontainers.image.description": SUMMARY, "org.opencontainers.image.licenses": "Apache-2.0",
          "org.opencontainers.image.version": NAME, "org.opencontainers.image.revision": COMMIT}


def image(archs):
    """The command."""
    made = Image(f"sluice:{NAME}", 0)
    for arch in archs:
        command, ours = pathlib.Path(ENV[f"COMMAND_{arch}"]), Tree(0)
        for name in ("sluice", "bootstrap"):
            ours.take(command / name, f"usr/lib/sluice/{name}")
        ours.folder("usr/lib/sluice/handlers")
        ours.add("usr/bin/sluice", link="../lib/sluice/sluice")
        ours.take(command / "about", "usr/share/doc/sluice")
        ours.folder("data", uid=NOBODY)
        made.add(ARCHITECTURES[arch][1], [ground(arch), ours], {
            "User": f"{NOBODY}:{NOBODY}", "WorkingDir": "/data", "Env": ["PATH=/usr/bin", f"AWS_CA_BUNDLE={BUNDLE}"], "Entrypoint": ["/usr/bin/sluice"],
            "Cmd": ["--help"], "Volumes": {"/data": {}}, "ExposedPorts": {"9464/tcp": {}}, "StopSignal": "SIGTERM", "Labels": LABELS})
    return {f"sluice-{NAME}-command-oci.tar": made.tar()}


def lambda_image(archs):
    """bootstrap where Lambda has runtimes: a layer above, or the function's zip, brings /var/task with a configuration and plugins."""
    made = Image(f"sluice-lambda:{NAME}", 0)
    for arch in archs:
        command, ours = pathlib.Path(ENV[f"COMMAND_{arch}"]), Tree(0)
        ours.take(command / "bootstrap", "var/runtime/bootstrap")
        ours.take(command / "about", "usr/share/doc/sluice")
        ours.folder("var/task")
        ours.folder("opt")
        made.add(ARCHITECTURES[arch][1], [ground(arch), ours], {
            "WorkingDir": "/var/task", "Entrypoint": ["/var/runtime/bootstrap"], "Cmd": ["sluice"], "Labels": LABELS,
            "Env": ["PATH=/usr/bin", "LAMBDA_TASK_ROOT=/var/task", f"AWS_CA_BUNDLE={BUNDLE}"]})
    return {f"sluice-{NAME}-lambda-oci.tar": made.tar()}


def provenance(files, archs):
    """An in-toto statement with SLSA's predicate; the workflow that publishes a release signs it."""
    materials = [{"uri": f"git+file:sluice@{COMMIT}", "digest": {"gitCommit": COMMIT}}]
    for file in sorted(pathlib.Path(ENV["ARCHIVE"]).glob("*.*")):
        if file.suffix in (".deb", ".xz", ".gz", ".bz2"):
            materials.append({"uri": f"debian:bookworm/{file.name}", "digest": {"sha256": digest(file.read_bytes())}})
    for line in pathlib.Path("scripts/package/zig.txt").read_text().split():
        if line.startswith("--hash=sha256:"):
            materials.append({"uri": "pypi:ziglang", "digest": {"sha256": line.removeprefix("--hash=sha256:")}})
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest(data)}} for name, data in sorted(files.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {"buildType": "urn:sluice:make-release:v1", "externalParameters": {"version": VERSION, "commit": COMMIT},
                                "internalParameters": {"architectures": list(archs), "glibc": GLIBC}, "resolvedDependencies": materials},
            "runDetails": {"builder": {"id": ENV.get("BUILDER", "urn:sluice:local")}}}}


def main():
    out, parts = pathlib.Path(sys.argv[1]), sys.argv[2:] or ["tarball", "deb", "zip", "image", "lambda-image", "cdk", "templates", "source"]
    archs = ENV["ARCHS"].split()
    files = {}
    for arch in archs:
        machine = ARCHITECTURES[arch][0]
        tree = installed(arch) if {"tarball", "deb"} & set(parts) else None
        files |= tarball(arch, tree) if "tarball" in parts else {}
        files |= deb(arch, tree) if "deb" in parts else {}
        if "zip" in parts:
            files[f"sluice-{NAME}-lambda-{machine}.zip"] = pathlib.Path(ENV[f"ZIP_{arch}"]).read_bytes()
            for kind, place in (("lambda", ENV[f"TASK_{arch}"]), ("linux", ENV[f"COMMAND_{arch}"] + "/about")):
                files[f"sluice-{NAME}-{kind}-{machine}.cdx.json"] = pathlib.Path(place, "sbom.cdx.json").read_bytes()
    files |= image(archs) if "image" in parts else {}
    files |= lambda_image(archs) if "lambda-image" in parts else {}
    files |= construct() if "cdk" in parts else {}
    files |= templates() if "templates" in parts else {}
    files |= source() if "source" in parts else {}
    if not sys.argv[2:]:
        files[f"sluice-{NAME}.intoto.json"] = json.dumps(provenance(files, archs), indent=1).encode() + b"\n"
        files["SHA256SUMS"] = "".join(f"{digest(data)}  {name}\n" for name, data in sorted(files.items())).encode()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, data in files.items():
        (out / name).write_bytes(data)
        print(f"release: {out / name}: {max(1, len(data) // 1024):,} KiB")


main()
