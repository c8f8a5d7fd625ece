"""What the fault programs share: chunks to send, the scripted server, sentry-prof in an empty place of its own."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
SERVER = TESTS / "support" / "sentry_server.py"
GOLDEN = TESTS / "data" / "sentry" / "golden_v2.json"
KEY = "c0ffee00c0ffee00c0ffee00c0ffee00"


class Failed(Exception):
    """A promise was broken."""


def check(holds, text):
    if not holds:
        raise Failed(text)


def say(text):
    print(text, flush=True)


def hex_id(draw):
    return f"{draw.getrandbits(128):032x}"


def write_chunks(folder, count, draw):
    """`count` valid V2 chunks; one in 20 has some 300 KB when packed, so that it can be cut off in its middle."""
    golden = json.loads(GOLDEN.read_text())
    session, paths = hex_id(draw), []
    folder.mkdir()
    for number in range(count):
        chunk = dict(golden, chunk_id=hex_id(draw), profiler_id=session)
        if number % 20 == 7:
            frames = [{"function": hex_id(draw), "instruction_addr": f"0x{0x55d0c0a01000 + i:x}"} for i in range(15_000)]
            chunk["profile"] = dict(golden["profile"], frames=golden["profile"]["frames"] + frames)
        paths.append(folder / f"{number:05}.json")
        paths[-1].write_text(json.dumps(chunk))
    return paths


def chunk_id_of(path):
    return json.loads(path.read_text())["chunk_id"]


def closed_port():
    """A port of this machine that refuses connections: bound, but nobody listens. Keep the socket."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return holder


def dsn_of(port):
    return f"http://{KEY}@127.0.0.1:{port}/42"


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not (result := condition()):
        check(time.monotonic() < end, f"waited {seconds} s in vain for {what}")
        time.sleep(0.02)
    return result


class Server:
    """tests/support/sentry_server.py with a script, keeping what it received in `folder`."""

    def __init__(self, folder, script):
        self.folder = folder
        folder.mkdir()
        (folder / "script").write_text(json.dumps(script))
        self.process = subprocess.Popen([sys.executable, "-B", SERVER, "--folder", folder, "--script", folder / "script"])
        self.port = int(wait_for(self.port_text, 20, "the server"))

    def port_text(self):
        path = self.folder / "port"
        return path.read_text() if path.exists() else None

    @property
    def dsn(self):
        return dsn_of(self.port)

    def requests(self):
        """How many came so far."""
        return sum(name.endswith(".json") for name in os.listdir(self.folder))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Sandbox:
    """Runs sentry-prof with a home, a current and a temporary directory in which nothing may appear."""

    def __init__(self, folder, sentry_prof):
        self.place, self.logs, self.sentry_prof = folder / "place", folder / "logs", sentry_prof
        self.place.mkdir()
        self.logs.mkdir()
        self.runs = 0

    def start(self, dsn, *arguments):
        self.runs += 1
        environment = {name: value for name, value in os.environ.items()
                       if not name.lower().endswith("_proxy") and not name.startswith(("SENTRY_", "XDG_"))}
        environment.update(HOME=str(self.place), TMPDIR=str(self.place), SENTRY_DSN=dsn)
        log = self.logs / f"{self.runs}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen([self.sentry_prof, *arguments], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=output, cwd=self.place, env=environment)
        process.log = log
        return process

    def run(self, dsn, *arguments, seconds=120):
        process = self.start(dsn, *arguments)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failed(f"still running after {seconds} s: {arguments}") from None
        return process

    def can_record(self, spin):
        """False where the kernel does not permit it, or there is no `spin`; with SENTRY_PROF_REQUIRE_PERF=1 that is a failure."""
        if not spin:
            return False
        probe = self.logs.parent / "probe.json"
        process = self.run("", "record", "-q", "-o", probe, "--", spin, "0.1")
        if probe.exists():
            return True
        check(os.environ.get("SENTRY_PROF_REQUIRE_PERF") != "1", f"cannot record: {process.log.read_text()}")
        say(f"skipped: recording is not possible here: {process.log.read_text().strip()}")
        return False

    def check_clean(self):
        left = [str(path) for path in self.place.rglob("*")]
        check(not left, f"files outside the spool: {left}")
        for log in self.logs.iterdir():
            check(KEY.encode() not in log.read_bytes(), f"the key was printed: {log}")


def kill(process):
    """SIGKILL; True if it was still running."""
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def make_draw(seed):
    """Random numbers that are the same again with the same --seed."""
    if seed is None:
        seed = random.SystemRandom().getrandbits(32)
    say(f"--seed {seed}")
    return random.Random(seed)


def add_options(parser):
    parser.add_argument("--sentry-prof", required=True, type=os.path.abspath)
    parser.add_argument("--seed", type=int, help="the same draws again (moments of the machine differ all the same)")
    parser.add_argument("--folder", type=Path, help="work there and leave it for inspection")
