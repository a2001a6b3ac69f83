"""A journal may lie on some file systems only, read from a list of mounts like the kernel's."""

from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.journals.sqlite.filesystems import file_system, refuse_shared

MOUNTINFO = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:25 / /mnt rw - nfs4 filer:/export rw,vers=4.2
31 30 8:2 / /mnt/local rw,noatime shared:5 master:2 - xfs /dev/sdb1 rw
32 21 0:26 / /my\040share rw - cifs //filer/share rw
33 21 0:27 / /code rw - fuse.sshfs me@there: rw
34 21 8:3 / /over rw - nfs filer:/old rw
35 21 8:3 / /over rw - btrfs /dev/sdc1 rw
36 21 0:28 / /windows rw - 9p drvfs rw
37 21 0:29 / /run rw - tmpfs tmpfs rw
38 21 0:30 / /pool rw - fuse.mergerfs a:b rw

a line that says nothing
"""

KINDS = {
    "/": "ext4",
    "/srv/tenure": "ext4",
    "/mnt": "nfs4",
    "/mnt/tenure": "nfs4",
    "/mnt/local/tenure": "xfs",
    "/mnt/localhost": "nfs4",
    "/my share/tenure": "cifs",
    "/code": "fuse.sshfs",
    "/over/tenure": "btrfs",
    "/windows/c": "9p",
    "/run/tenure": "tmpfs",
    "/pool": "fuse.mergerfs",
}
SHARED = {"nfs4", "cifs", "fuse.sshfs", "9p"}


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTINFO)
    return path


@pytest.mark.parametrize(("directory", "kind"), KINDS.items())
def test_a_directory_is_on_the_file_system_mounted_nearest_above_it(
    mounts: Path, directory: str, kind: str
) -> None:
    assert file_system(Path(directory), mounts) == kind


@pytest.mark.parametrize("directory", [each for each, kind in KINDS.items() if kind in SHARED])
def test_what_other_hosts_may_share_is_refused(mounts: Path, directory: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        refuse_shared(Path(directory), mounts)
    assert f"{directory} is on a file system of type {KINDS[directory]}" in str(caught.value)
    assert "Put the journal on a local disk" in str(caught.value)


@pytest.mark.parametrize("directory", [each for each, kind in KINDS.items() if kind not in SHARED])
def test_the_others_are_accepted(mounts: Path, directory: str) -> None:
    refuse_shared(Path(directory), mounts)


def test_where_there_is_no_list_of_mounts_all_is_accepted(tmp_path: Path) -> None:
    assert file_system(tmp_path, tmp_path / "none") is None
    refuse_shared(tmp_path, tmp_path / "none")
