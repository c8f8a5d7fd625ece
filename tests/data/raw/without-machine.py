#!/usr/bin/env python3
"""Takes out of a raw log of a launched program what belongs to the machine that recorded it.

usage: without-machine.py FROM TO

That is the kernel's vdso (its mapping and its code), and the kernel's and the device's names.
The format is described in docs/raw-log.md.
"""
import struct
import sys

HEAD_BYTES = 12
SESSION, RECORD, OPENED, FILE_BYTES, END = 1, 2, 6, 7, 8
# Of the session's last strings: platform, release, environment, transaction, SDK's name and version,
# os name, version and build, architecture, manufacturer and model.
TEXTS, MACHINE_TEXTS = 12, (7, 8, 10, 11)


def entries_of(log):
    at = HEAD_BYTES
    while at < len(log):
        kind, size = struct.unpack_from("<II", log, at)
        yield kind, log[at + 8:at + 8 + size]
        at += 8 + size


def texts_of(payload, at):
    """The strings from `at` on, if just so many fill the rest; else None."""
    texts = []
    while at + 4 <= len(payload):
        size, = struct.unpack_from("<I", payload, at)
        texts.append(payload[at + 4:at + 4 + size])
        at += 4 + size
    return texts if at == len(payload) and len(texts) == TEXTS else None


def without_machine(session):
    begin = session.index(struct.pack("<I", 4) + b"rust")
    texts = texts_of(session, begin)
    for i in MACHINE_TEXTS:
        texts[i] = b""
    return session[:begin] + b"".join(struct.pack("<I", len(t)) + t for t in texts)


def neutral(log):
    entries = list(entries_of(log))
    opened = [p for kind, p in entries if kind == OPENED]
    # The vdso is mapped last: no other file's number changes if it goes.
    assert b"[vdso]" in opened[-1] and not any(b"[vdso]" in p for p in opened[:-1])
    vdso_number = len(opened) - 1
    result = log[:HEAD_BYTES]
    dropped_records = 0
    for kind, payload in entries:
        is_of_vdso = b"[vdso]" in payload if kind in (RECORD, OPENED) else (
            kind == FILE_BYTES and struct.unpack_from("<I", payload)[0] == vdso_number)
        dropped_records += is_of_vdso and kind == RECORD
        if is_of_vdso:
            continue
        if kind == END:  # the time, then how many records there were
            count, = struct.unpack_from("<Q", payload, 8)
            payload = payload[:8] + struct.pack("<Q", count - dropped_records) + payload[16:]
        if kind == SESSION:
            payload = without_machine(payload)
        result += struct.pack("<II", kind, len(payload)) + payload
    return result


with open(sys.argv[1], "rb") as source:
    LOG = neutral(source.read())
with open(sys.argv[2], "wb") as target:
    target.write(LOG)
