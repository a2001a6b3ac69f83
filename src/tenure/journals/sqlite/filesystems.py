"""Which file system a directory is on, and whether a journal may lie there.

SQLite's write-ahead log has its index in memory that all its processes map; two hosts cannot. And
network file systems have been known to grant a lock twice. Both mean two leaders, so file systems
that are known not to be local are refused. Unknown ones are accepted: a list of forbidden ones is
never complete, and this one is a guard rail, not a proof.
"""

from pathlib import Path

from tenure.errors import ConfigurationError

MOUNTS = Path("/proc/self/mountinfo")

SHARED = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "coda", "9p"),
        *("ceph", "glusterfs", "lustre", "beegfs", "orangefs", "pvfs2", "gpfs", "gfs2", "ocfs2"),
        *("davfs", "vboxsf", "prl_fs"),
    }
)
"""File systems that other hosts may have mounted too. 9p, vboxsf and prl_fs are what a virtual
machine shares with its host. virtiofs is not here: it is the root of many a virtual machine, which
shares it with nobody."""

SHARED_BY_FUSE = frozenset(
    {
        *("sshfs", "nfs", "smbnetfs", "davfs", "davfs2", "rclone", "s3fs", "goofys", "gcsfuse"),
        *("mount-s3", "blobfuse", "blobfuse2", "juicefs", "ceph", "ceph-fuse", "glusterfs", "mfs"),
        *("vmhgfs-fuse", "grpcfuse", "osxfs"),
    }
)


def refuse_shared(directory: Path, mounts: Path = MOUNTS) -> None:
    """Raise ConfigurationError if `directory` is on a file system known not to be local.

    Accepts where `mounts` cannot be read: there is no such list but on Linux.
    """
    kind = file_system(directory, mounts)
    if kind is None:
        return
    if kind in SHARED or kind.removeprefix("fuse.") in SHARED_BY_FUSE:
        raise ConfigurationError(
            f"{directory} is on a file system of type {kind}, which other hosts may share: two "
            "managers could lead at once. Put the journal on a local disk, and run every manager "
            "of it on that host"
        )


def file_system(directory: Path, mounts: Path = MOUNTS) -> str | None:
    """The type of the file system that `directory`, an absolute path, is on; None if not known."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    best, kind = -1, None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, described = before.split(" "), after.split(" ")
        if len(fields) <= _MOUNT_POINT or not described[0]:
            continue
        point = Path(_unescaped(fields[_MOUNT_POINT]))
        # Of two on one point the later is on top.
        if directory.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), described[0]
    return kind


_MOUNT_POINT = 4  # mount id, parent id, device, root, mount point, ...


def _unescaped(field: str) -> str:
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(escape, character)
    return field
