#!/usr/bin/env python3
"""A file system of FUSE whose server stops answering.

    hanging_files.py FOLDER MOUNT_POINT

shows FOLDER's regular files, read-only, at MOUNT_POINT to all users, and prints "mounted". Nothing is remembered by the kernel but the
pages that were read. From SIGUSR1 on requests are taken but not answered: who made one cannot be killed before it is. With SIGUSR2 they
are, and all that come after. SIGTERM unmounts and ends, which fails the requests that wait. Needs root and /dev/fuse.
Source: linux/fuse.h (protocol 7.31), fuse(4).
"""
import ctypes
import errno
import os
import select
import signal
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 17, 18, 25, 26
INTERRUPT, BATCH_FORGET = 36, 42
UNANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)
ROOT = 1
IN_HEADER = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
MOST_BYTES = 128 * 1024
MNT_DETACH = 2


class Refused(Exception):
    def __init__(self, number):
        super().__init__(os.strerror(number))
        self.number = number


def attributes(node, status):
    return struct.pack("<6Q10I", node, status.st_size, (status.st_size + 511) // 512, 0, 0, 0, 0, 0, 0, status.st_mode, 1, 0, 0, 0, 4096, 0)


class Files:
    def __init__(self, folder):
        self.folder = os.stat(folder)
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
        self.nodes = {name: ROOT + 1 + i for i, name in enumerate(names)}
        self.files = {node: os.open(os.path.join(folder, name), os.O_RDONLY) for name, node in self.nodes.items()}

    def status(self, node):
        if node == ROOT:
            return self.folder
        if node not in self.files:
            raise Refused(errno.ENOENT)
        return os.fstat(self.files[node])

    def answer(self, opcode, node, body):
        if opcode == INIT:
            # Protocol, read-ahead, flags, and how many requests may be in the background.
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, MOST_BYTES, 0, 16, 12, MOST_BYTES, 1, MOST_BYTES // 4096, 0, 0)
        if opcode == LOOKUP:
            child = self.nodes.get(os.fsdecode(body.rstrip(b"\0")))
            if child is None:
                raise Refused(errno.ENOENT)
            # Valid for no time: each look-up and each stat() asks again.
            return struct.pack("<QQQQII", child, 0, 0, 0, 0, 0) + attributes(child, self.status(child))
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + attributes(node, self.status(node))
        if opcode == OPEN:
            return struct.pack("<QII", 0, 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return os.pread(self.files[node], size, offset)
        if opcode == STATFS:
            return struct.pack("<5Q4I24x", 1, 0, 0, 1, 0, 4096, 255, 4096, 0)
        if opcode in (RELEASE, FLUSH):
            return b""
        raise Refused(errno.ENOSYS)


class Server:
    def __init__(self, folder, mount_point):
        self.files = Files(folder)
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
        self.mount_point = os.fsencode(mount_point)
        self.libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.device},rootmode={stat.S_IFDIR:o},user_id=0,group_id=0,allow_other"
        if self.libc.mount(b"hanging_files", self.mount_point, b"fuse", 0, options.encode()) != 0:
            sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
        self.hangs = False
        self.waiting = []
        # A signal that comes just before read() would not be seen until the next request: they wake poll() through a pipe.
        self.signals, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGUSR1, lambda *_: self.hang())
        signal.signal(signal.SIGUSR2, lambda *_: self.go_on())
        signal.signal(signal.SIGTERM, lambda *_: self.end())

    def hang(self):
        self.hangs = True

    def go_on(self):
        self.hangs = False
        waiting, self.waiting = self.waiting, []
        for request in waiting:
            self.reply(request)

    def end(self):
        self.libc.umount2(self.mount_point, MNT_DETACH)
        os._exit(0)

    def run(self):
        ready = select.poll()
        ready.register(self.device, select.POLLIN)
        ready.register(self.signals, select.POLLIN)
        while True:
            readable = [fd for fd, _ in ready.poll()]
            if self.signals in readable:
                os.read(self.signals, 4096)
            if self.device not in readable:
                continue
            try:
                request = os.read(self.device, MOST_BYTES + 4096)
            except BlockingIOError:
                continue  # who asked has been killed
            if self.hangs:
                self.waiting.append(request)
            else:
                self.reply(request)

    def reply(self, request):
        _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
        if opcode in UNANSWERED:
            return
        try:
            number, body = 0, self.files.answer(opcode, node, request[IN_HEADER.size:])
        except Refused as refused:
            number, body = refused.number, b""
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(body), -number, unique) + body)
        except FileNotFoundError:
            pass  # who asked has been killed


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    server = Server(sys.argv[1], sys.argv[2])
    print("mounted", flush=True)
    server.run()


if __name__ == "__main__":
    main()
