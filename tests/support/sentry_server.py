#!/usr/bin/env python3
"""A stand-in for Sentry's ingestion that answers by script and keeps what it received.

usage: sentry_server.py --folder DIR [--script FILE] [--port N] [--certificate PEM --key PEM]

The port it listens on (127.0.0.1) is written to DIR/port when it is ready. Request n is kept as DIR/n.body (as sent) and then
DIR/n.json: method, path, headers, connection (a number per connection), answer (what was done to it) and whole (false if
the body ended early).

FILE is JSON: a list of answers, one a request, the last one again for all further requests; or
{"mix": [answers], "seed": N} to draw them at random, the same draw for the same seed. Without FILE all is 200.
An answer is a status, or an object with "status", "headers" (name: value, or a list of values), "body", "delay" (seconds before
the answer), or with "do":
  "reset"         takes the request, then resets the connection instead of an answer
  "reset-early"   resets the connection before the body is read
  "close"         takes the request, then closes the connection without a word
  "stall"         takes the request, then says nothing for "seconds" (default 3600)
  "stall-early"   stops reading in the middle of the request
  "status-line"   sends nothing but the first line of an answer and closes
  "half-head"     sends the first half of an answer's head and closes
  "half-body"     sends 200 and a head that promises more than it gives
  "bomb"          200 with "Content-Encoding: gzip" and endless zeros, compressed
  "endless"       200 and a body without an end
  "header-flood"  headers without an end
  "long-header"   one header without an end
  "continues"     "100 Continue" without an end
  "garbage"       bytes that are no HTTP
  "restart"       resets all connections, refuses new ones for "seconds" (default 1), then listens again on the same port
"""

import argparse
import contextlib
import gzip
import itertools
import json
import random
import signal
import socket
import ssl
import struct
import threading
import time
from pathlib import Path

LARGEST_HEAD = 64 * 1024
PIECE = 64 * 1024
REASONS = {200: "OK", 302: "Found", 400: "Bad Request", 403: "Forbidden", 413: "Payload Too Large",
           429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable"}


class Script:
    """Which answer comes next."""

    def __init__(self, text):
        steps = json.loads(text)
        self._lock = threading.Lock()
        if isinstance(steps, dict):
            draw = random.Random(steps.get("seed", 0))
            self._answers = (draw.choice(steps["mix"]) for _ in itertools.count())
        else:
            self._answers = itertools.chain(steps, itertools.repeat(steps[-1]))

    def next(self):
        with self._lock:
            answer = next(self._answers)
        return {"status": answer} if isinstance(answer, int) else answer


class Ended(Exception):
    """The client went away, or the answer is to end the connection."""


def reset(connection):
    """Closes with RST: what the client has not read yet is lost to it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Head:
    def __init__(self, text):
        first, *lines = text.decode("latin-1").split("\r\n")
        self.method, self.path, _ = first.split(" ", 2)
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self.length = int(self.headers.get("content-length", "0"))


class Connection:
    """One client, request after request."""

    def __init__(self, server, stream, number):
        self.server, self.stream, self.number = server, stream, number
        self.buffer = b""

    def receive(self):
        piece = self.stream.recv(PIECE)
        if not piece:
            raise Ended
        return piece

    def read_head(self):
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > LARGEST_HEAD:
                raise Ended
            self.buffer += self.receive()
            if self.buffer.startswith(b"\x16"):  # a TLS ClientHello; web servers answer so
                self.stream.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                raise Ended
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        return Head(head)

    def read_body(self, length):
        """The body, and whether all of it came."""
        pieces, have = [self.buffer], len(self.buffer)
        try:
            while have < length:
                pieces.append(self.receive())
                have += len(pieces[-1])
        except (Ended, OSError):
            return b"".join(pieces), False
        everything = b"".join(pieces)
        self.buffer = everything[length:]
        return everything[:length], True

    def serve(self):
        while True:
            head = self.read_head()
            answer = self.server.script.next()
            action = answer.get("do", "")
            if action == "stall-early":
                self.server.keep(self, head, b"", False, answer)
                time.sleep(answer.get("seconds", 3600))
                raise Ended
            if action == "reset-early":
                self.server.keep(self, head, b"", False, answer)
                reset(self.stream)
                raise Ended
            body, is_whole = self.read_body(head.length)
            self.server.keep(self, head, body, is_whole, answer)
            if not is_whole:
                raise Ended
            if action:
                getattr(self, "do_" + action.replace("-", "_"))(answer)
                raise Ended
            self.answer(answer)

    def answer(self, answer):
        self.server.is_over.wait(answer.get("delay", 0))
        status = answer["status"]
        body = answer.get("body", '{"detail":"scripted"}' if 400 <= status < 500 else "{}").encode()
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Something')}", f"Content-Length: {len(body)}"]
        for name, value in answer.get("headers", {}).items():
            lines += [f"{name}: {one}" for one in (value if isinstance(value, list) else [value])]
        self.stream.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def send_for_ever(self, start, piece):
        self.stream.sendall(start)
        while not self.server.is_over.is_set():
            self.stream.sendall(piece)

    def do_reset(self, _):
        reset(self.stream)

    def do_close(self, _):
        pass

    def do_stall(self, answer):
        self.server.is_over.wait(answer.get("seconds", 3600))

    def do_status_line(self, _):
        self.stream.sendall(b"HTTP/1.1 200 OK\r\n")

    def do_half_head(self, _):
        self.stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")

    def do_half_body(self, _):
        self.stream.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"id":')

    def do_bomb(self, _):
        self.send_for_ever(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n",
                           gzip.compress(bytes(64 * 1024 * 1024)))

    def do_endless(self, _):
        self.send_for_ever(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x" * PIECE)

    def do_header_flood(self, _):
        self.send_for_ever(b"HTTP/1.1 200 OK\r\n", b"X-Flood: " + b"y" * 1000 + b"\r\n")

    def do_long_header(self, _):
        self.send_for_ever(b"HTTP/1.1 200 OK\r\nX-Long: ", b"y" * PIECE)

    def do_continues(self, _):
        self.send_for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    def do_garbage(self, _):
        self.stream.sendall(b"\x00\x01\x02 no HTTP here\r\n\r\n" * 10)

    def do_restart(self, answer):
        self.server.restart(answer.get("seconds", 1))


class Server:
    def __init__(self, folder, script, port, tls):
        self.folder, self.script, self.port, self.tls = folder, script, port, tls
        self.lock = threading.Lock()
        self.requests = 0
        self.connections = {}
        self.listener = None
        self.pause = 0
        self.is_over = threading.Event()

    def keep(self, connection, head, body, is_whole, answer):
        with self.lock:
            self.requests += 1
            number = self.requests
        facts = {"method": head.method, "path": head.path, "headers": head.headers,
                 "connection": connection.number, "answer": answer, "whole": is_whole}
        (self.folder / f"{number}.body").write_bytes(body)
        unfinished = self.folder / f"{number}.json.new"
        unfinished.write_text(json.dumps(facts))
        unfinished.rename(self.folder / f"{number}.json")

    def listen(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(128)
        self.port = self.listener.getsockname()[1]

    def restart(self, seconds):
        """Called on a connection's thread; the main thread listens again."""
        with self.lock:
            self.pause = seconds
            for stream in self.connections.values():
                # First shutdown(), which wakes the thread that reads from it.
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)
                    reset(stream)
            # shutdown() wakes the accept() of the main thread; close() would not.
            self.listener.shutdown(socket.SHUT_RDWR)

    def handle(self, stream, number):
        try:
            if self.tls:
                stream = self.tls.wrap_socket(stream, server_side=True)
            with self.lock:
                self.connections[number] = stream
            Connection(self, stream, number).serve()
        except (Ended, OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.connections.pop(number, None)
            stream.close()

    def run(self):
        self.listen()
        unfinished = self.folder / "port.new"
        unfinished.write_text(str(self.port))
        unfinished.rename(self.folder / "port")
        for number in itertools.count(1):
            try:
                stream, _ = self.listener.accept()
            except OSError:
                self.listener.close()
                time.sleep(self.pause)
                self.listen()
                continue
            threading.Thread(target=self.handle, args=(stream, number), daemon=True).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args()
    tls = None
    if options.certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.certificate, options.key)
    signal.signal(signal.SIGTERM, lambda *_: exit(0))
    script = Script(options.script.read_text() if options.script else "[200]")
    Server(options.folder, script, options.port, tls).run()


if __name__ == "__main__":
    main()
