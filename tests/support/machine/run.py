#!/usr/bin/env python3
"""Runs a program on a machine of another CPU: Debian's kernel of its installer in qemu-system, and nothing on its disk but
the program, the libraries and files it needs, and busybox.

run.py --init INIT --installer FOLDER --root FOLDER [--cpu CPU] [--file FILE]... PROGRAM [ARGUMENT]...

What is named lies where it lies on this machine: programs have such paths compiled in. Prints what the machine prints,
and ends with the program's exit status; 125 where the machine does not say one.
"""

import argparse
import gzip
import os
import re
import stat
import subprocess
import sys
import tempfile

QEMU = "qemu-system-aarch64"
LIBRARIES = ["ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"]


class Archive:
    """The files of a machine: cpio in the form "newc", which kernels unpack (Documentation/driver-api/early-userspace/
    buffer-format.rst)."""

    def __init__(self):
        self.bytes = bytearray()
        self.folders = set()
        self.count = 0

    def put(self, name, mode, data=b"", device=(0, 0)):
        self.count += 1
        path = name.encode() + b"\0"
        fields = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
        self.bytes += b"070701" + b"".join(b"%08x" % field for field in fields) + path
        self.pad()
        self.bytes += data
        self.pad()

    def pad(self):
        self.bytes += bytes(-len(self.bytes) % 4)

    def folder(self, name):
        if name and name not in self.folders:
            self.folder(os.path.dirname(name))
            self.folders.add(name)
            self.put(name, stat.S_IFDIR | 0o755)

    def file(self, name, data):
        name = name.lstrip("/")
        self.folder(os.path.dirname(name))
        self.put(name, stat.S_IFREG | 0o755, data)

    def copy(self, source, name=None):
        with open(source, "rb") as file:
            self.file(name or os.path.abspath(source), file.read())


def file_of_archive(archive, wanted):
    """A file of the installer's own archive."""
    at = 0
    while archive[at:at + 6] == b"070701":
        fields = [int(archive[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
        name = archive[at + 110:at + 110 + fields[11] - 1].decode()
        begin = (at + 110 + fields[11] + 3) & ~3
        if name == wanted:
            return archive[begin:begin + fields[6]]
        at = (begin + fields[6] + 3) & ~3
    sys.exit(f"run.py: the installer has no {wanted}")


def files_of_machine(args):
    archive = Archive()
    for folder in ("proc", "sys", "dev", "tmp"):
        archive.folder(folder)
    archive.put("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.copy(args.init, "init")
    for library in LIBRARIES:
        archive.copy(os.path.join(args.root, "lib", library), "lib/" + library)
    with gzip.open(os.path.join(args.installer, "initrd.gz")) as file:
        archive.file("bin/busybox", file_of_archive(file.read(), "bin/busybox"))
    for name in ("sh", "readlink", "grep", "gzip", "true", "cat", "echo"):
        archive.put("bin/" + name, stat.S_IFLNK | 0o777, b"busybox")
    for file in dict.fromkeys([args.program, *args.file]):
        archive.copy(file)
    archive.put("TRAILER!!!", 0)
    return archive.bytes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--init", required=True)
    parser.add_argument("--installer", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--cpu", default="max")
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    with tempfile.NamedTemporaryFile(suffix=".cpio") as disk:
        disk.write(files_of_machine(args))
        disk.flush()
        line = ["console=ttyAMA0", "quiet", "panic=-1", "--", os.path.abspath(args.program), *args.arguments]
        command = [QEMU, "-M", "virt", "-cpu", args.cpu, "-smp", "2", "-m", "2G", "-nodefaults", "-nographic", "-serial",
                   "stdio", "-no-reboot", "-kernel", os.path.join(args.installer, "linux"), "-initrd", disk.name,
                   "-append", " ".join(line)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as machine:
            status = 125
            for bytes_of_line in machine.stdout:
                text = bytes_of_line.decode(errors="replace").rstrip("\r\n")
                print(text, flush=True)
                if said := re.fullmatch(r"machine: status (\d+)", text):
                    status = int(said[1])
    return status


sys.exit(main())
