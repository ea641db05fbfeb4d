"""Trees of files as archives that are the same bytes each time: sorted, one time for all, owned by root."""
import gzip
import hashlib
import io
import json
import pathlib
import tarfile


class Tree:
    """Files by their path in the archive: ours to list, whatever the folder is that they came from."""

    def __init__(self, time):
        self.time, self.members = time, {}

    def add(self, path, data=b"", mode=0o644, link=None, kind=tarfile.REGTYPE, uid=0):
        member = tarfile.TarInfo(path)
        member.mode, member.mtime, member.uid, member.gid, member.size, member.type = mode, self.time, uid, uid, len(data), kind
        if link is not None:
            member.type, member.linkname, member.mode = tarfile.SYMTYPE, link, 0o777
        self.members[path] = (member, data)

    def folder(self, path, mode=0o755, uid=0):
        self.add(path, mode=mode, kind=tarfile.DIRTYPE, uid=uid)

    def take(self, source, path):
        """All below the folder `source`, or the file, at `path`; programs stay programs."""
        source = pathlib.Path(source)
        if source.is_symlink():
            self.add(path, link=str(source.readlink()))
        elif source.is_dir():
            if path:
                self.folder(path)
            for inner in sorted(source.iterdir()):
                self.take(inner, f"{path}/{inner.name}".lstrip("/"))
        else:
            self.add(path, source.read_bytes(), 0o755 if source.stat().st_mode & 0o100 else 0o644)

    def below(self, top):
        """The same tree in a folder."""
        other = Tree(self.time)
        other.folder(top)
        for path, (member, data) in self.members.items():
            other.add(f"{top}/{path}", data, member.mode, member.linkname or None, member.type, member.uid)
        return other

    def tar(self):
        parents = {str(p) for path in self.members for p in pathlib.PurePosixPath(path).parents if str(p) != "."}
        for path in parents - self.members.keys():
            self.folder(path)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted(self.members):
                member, data = self.members[path]
                archive.addfile(member, io.BytesIO(data))
        return out.getvalue()

    def write(self, folder):
        """The files themselves, for a program that packs them."""
        for path, (member, data) in sorted(self.members.items()):
            place = pathlib.Path(folder) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if member.issym():
                place.symlink_to(member.linkname)
            elif member.isdir():
                place.mkdir(exist_ok=True)
                place.chmod(member.mode)
            else:
                place.write_bytes(data)
                place.chmod(member.mode)


def renamed(member, path):
    member.name = path
    return member


def packed(data):
    return gzip.compress(data, 9, mtime=0)


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Image:
    """An OCI image layout (image-spec 1.0) in one tar file, with one image for each architecture."""

    def __init__(self, name, time):
        self.name, self.tree, self.manifests = name, Tree(time), []

    def blob(self, data, kind):
        self.tree.add(f"blobs/sha256/{digest(data)}", data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest(data)}", "size": len(data)}

    def text(self, value, kind):
        return self.blob(json.dumps(value, separators=(",", ":")).encode(), kind)

    def add(self, architecture, layers, config):
        tars = [layer.tar() for layer in layers]
        described = self.text({"created": "1970-01-01T00:00:00Z", "architecture": architecture, "os": "linux", "config": config,
                               "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(tar)}" for tar in tars]}}, "config.v1+json")
        manifest = self.text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": described,
                              "layers": [self.blob(packed(tar), "layer.v1.tar+gzip") for tar in tars]}, "manifest.v1+json")
        self.manifests.append({**manifest, "platform": {"architecture": architecture, "os": "linux"}})

    def tar(self):
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": self.manifests}
        if len(self.manifests) > 1:
            index = {"schemaVersion": 2, "manifests": [self.text(index, "index.v1+json")]}
        index["manifests"][0] = {**index["manifests"][0], "annotations": {"org.opencontainers.image.ref.name": self.name}}
        self.tree.add("index.json", json.dumps(index).encode())
        self.tree.add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}\n')
        return self.tree.tar()
