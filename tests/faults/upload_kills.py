#!/usr/bin/env python3
"""sentry-prof killed with SIGKILL at random moments: while it sends from a spool, while it puts files there, while it records
with --upload --spool. After each kill every chunk is accepted, in the spool, or its file was not finished yet. By hand:
scripts/fault-run.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import answers
from harness import (Failed, Sandbox, Server, add_options, check, chunk_id_of, closed_port, dsn_of, kill,
                     make_draw, say, write_chunks)
from ledger import Ledger, check_none_lost, spooled_ids

CHUNKS_A_ROUND = 20


class Kills:
    def __init__(self, folder, options, draw):
        self.folder, self.options, self.draw = folder, options, draw
        self.spool, self.sandbox = folder / "spool", Sandbox(folder, options.sentry_prof)
        self.known = set()
        self.counts = {}

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def uploader(self, *files):
        return self.sandbox.start(self.server.dsn, "upload", "--spool", self.spool, "--max-retries", "0", *files)

    def check_none_lost(self, when):
        check_none_lost(self.known, self.ledger, self.spool, when)

    def put_into_spool(self, files):
        """While the server is away."""
        with closed_port() as port:
            self.sandbox.run(dsn_of(port.getsockname()[1]), "upload", "--spool", self.spool, "--max-retries", "0", *files)
        self.known.update(map(chunk_id_of, files))
        self.check_none_lost("put there with the server away")

    def kill_at(self, seconds, start, count=1):
        """Keeps `count` processes running until that moment, then kills them; how many of them were still running."""
        end = time.monotonic() + seconds
        running = [start() for _ in range(count)]
        while time.monotonic() < end:
            for i, process in enumerate(running):
                if process.poll() is not None:
                    running[i] = start()
            time.sleep(0.001)
        return sum([kill(process) for process in running])

    def kill_sending(self, files, count):
        self.put_into_spool(files)
        killed = self.kill_at(self.draw.uniform(0.005, 0.3), self.uploader, count)
        self.count("while two send" if count > 1 else "while sending", killed)

    def kill_putting(self, files):
        """What is not known of then is uploaded again, as its owner would do."""
        process = self.uploader(*files)
        time.sleep(self.draw.uniform(0.005, 0.15))
        self.count("while putting files there", kill(process))
        there = spooled_ids(self.spool) | self.ledger.taken_ids()
        self.known.update(chunk_id_of(path) for path in files if chunk_id_of(path) in there)
        again = [path for path in files if chunk_id_of(path) not in there]
        if again:
            self.put_into_spool(again)

    def kill_recording(self):
        output = self.folder / f"recording-{self.sandbox.runs}"
        with subprocess.Popen([self.options.spin, "3600"]) as target:
            try:
                process = self.sandbox.start(self.server.dsn, "record", "-q", "-p", str(target.pid), "--upload", "--spool", self.spool,
                                             "--max-retries", "0", "--chunk-seconds", "0.1", "-o", f"{output}/")
                time.sleep(self.draw.uniform(0.2, 1.2))
                self.count("while recording", kill(process))
                check(target.poll() is None, "the target ended, too")
            finally:
                target.kill()
        files = list(output.glob("*.json"))  # a chunk is in the spool before its file is there
        self.known.update(map(chunk_id_of, files))
        self.count("chunks of recordings", len(files))

    def round(self, number, can_record):
        files = write_chunks(self.folder / f"chunks-{number}", CHUNKS_A_ROUND, self.draw)
        way = number % 5
        if way == 0 and can_record:
            self.put_into_spool(files)
            self.kill_recording()
        elif way == 2:
            self.kill_putting(files)
        else:
            self.kill_sending(files, 2 if way == 4 else 1)
        self.check_none_lost(f"round {number + 1}")

    def send_the_rest(self):
        while spooled_ids(self.spool):
            process = self.sandbox.run(self.server.dsn, "upload", "-q", "--spool", self.spool, "--max-retries", "0")
            check(process.returncode in (0, 5, 6), f"exit status {process.returncode}: {process.log.read_text()}")

    def killed(self):
        return sum(count for what, count in self.counts.items() if what.startswith("while"))

    def run(self):
        with Server(self.folder / "server", answers.mix(self.draw, 3600, successes_each=6)) as self.server:
            self.ledger = Ledger(self.server.folder)
            can_record = self.sandbox.can_record(self.options.spin)
            for number in itertools.count():
                if self.killed() >= self.options.kills:
                    break
                check(number < 10 * self.options.kills, "hardly any kill finds sentry-prof running")
                self.round(number, can_record)
            self.send_the_rest()
            taken = self.ledger.taken_ids()
        check(self.known <= taken, f"{len(self.known - taken)} chunks were not accepted")
        self.ledger.check_pieces()
        restarts = sum(request.action == "restart" for request in self.ledger.requests)
        repeated = self.ledger.check_repetitions(self.killed() + restarts)
        left = [path.name for path in self.spool.iterdir()]
        check(not left, f"left in the spool: {left}")
        self.sandbox.check_clean()
        say(f"killed {self.killed()} times: {self.counts}; {len(self.known)} chunks accepted, {repeated} of them "
            f"again after a lost answer; {self.sandbox.runs} runs, {len(self.ledger.requests)} requests: {self.ledger.actions()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--spin", type=os.path.abspath, help="the program to record; without it nothing is recorded")
    parser.add_argument("--kills", type=int, default=50)
    options = parser.parse_args()
    try:
        draw = make_draw(options.seed)
        if options.folder:
            options.folder.mkdir()
            return Kills(options.folder.resolve(), options, draw).run()
        with tempfile.TemporaryDirectory(prefix="sentry-prof-kills-") as folder:
            return Kills(Path(folder), options, draw).run()
    except Failed as failure:
        sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
