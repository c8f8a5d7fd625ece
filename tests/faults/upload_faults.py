#!/usr/bin/env python3
"""Uploads against a server that limits, fails, resets, stalls, cuts its answers off and restarts: nothing is lost, nothing is
sent again after an answer that was heard, and nothing but the spool is written. By hand: scripts/fault-run.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import answers
from harness import (Failed, Sandbox, Server, add_options, check, chunk_id_of, closed_port, dsn_of, make_draw, say, wait_for,
                     write_chunks)
from ledger import Ledger, check_none_lost, chunk_id_in_file, spooled_ids

BATCH = 10  # files that one run puts into the spool
# Waits of seconds between tries: seldom.
RETRIES = ["0"] * 30 + ["1", "2"]
DONE, LATER = 0, (5, 6)


class SpoolRun:
    """Files go into a spool, batch by batch, and out of it, until it is empty."""

    def __init__(self, folder, sandbox, server, draw):
        self.spool, self.sandbox, self.server, self.draw = folder / "spool", sandbox, server, draw
        self.ledger, self.known, self.pairs = Ledger(server.folder), set(), 0

    def upload(self, files):
        return self.sandbox.start(self.server.dsn, "upload", "-q", "--spool", self.spool,
                                  "--max-retries", self.draw.choice(RETRIES), *files)

    def one(self, files=()):
        process = self.upload(files)
        status = process.wait(600)
        self.known.update(map(chunk_id_of, files))
        check(status == DONE or status in LATER, f"exit status {status}: {process.log.read_text()}")
        left = spooled_ids(self.spool)
        check((status == DONE) == (not left), f"exit status {status} with {len(left)} chunks in the spool")
        return left

    def two(self):
        """Two at once, of one spool."""
        self.pairs += 1
        for process in [self.upload([]), self.upload([])]:
            status = process.wait(600)
            check(status == DONE or status in LATER, f"exit status {status}: {process.log.read_text()}")

    def check_none_lost(self):
        check_none_lost(self.known, self.ledger, self.spool, f"after {self.sandbox.runs} runs")

    def run(self, chunks):
        for start in range(0, len(chunks), BATCH):
            left = self.one(chunks[start:start + BATCH])
            self.check_none_lost()
        while left:
            if self.draw.random() < 0.2:
                self.two()
            left = self.one()
            if self.sandbox.runs % 10 == 0:
                self.check_none_lost()
            check(self.sandbox.runs < 30 * len(chunks), f"{len(left)} chunks do not leave the spool")

    def check_end(self):
        taken = self.ledger.taken_ids()
        check(taken == self.known, f"{len(self.known - taken)} chunks not accepted, {len(taken - self.known)} never sent")
        self.ledger.check_pieces()
        # A restart of the server tears both connections of a pair: one may have had its answer on the way.
        restarts = sum(request.action == "restart" for request in self.ledger.requests)
        return self.ledger.check_repetitions(restarts if self.pairs else 0)


def faults_with_spool(folder, options, draw):
    folder.mkdir()
    chunks = write_chunks(folder / "chunks", options.chunks, draw)
    texts = [path.read_bytes() for path in chunks]
    sandbox = Sandbox(folder, options.sentry_prof)
    with Server(folder / "server", answers.mix(draw, 3600, long_stalls=options.long_stalls)) as server:
        run = SpoolRun(folder, sandbox, server, draw)
        run.run(chunks)
        repeated = run.check_end()
    sandbox.check_clean()
    check(not list(run.spool.iterdir()), "the spool is not empty")
    check(texts == [path.read_bytes() for path in chunks], "a file changed")
    say(f"with a spool: {len(chunks)} chunks accepted, {repeated} of them again after a lost answer; {sandbox.runs} runs of "
        f"sentry-prof ({run.pairs} pairs), {len(run.ledger.requests)} requests: {run.ledger.actions()}")


def accepted_in(log):
    """Files that sentry-prof says the server accepted."""
    return {line.split(": ")[-2] for line in log.read_text().splitlines() if ": accepted by " in line}


def faults_without_spool(folder, options, draw):
    """Its waits for limits and between tries are of a second and more: fewer chunks."""
    folder.mkdir()
    left = write_chunks(folder / "chunks", options.direct_chunks, draw)
    known = set(map(chunk_id_of, left))
    sandbox = Sandbox(folder, options.sentry_prof)
    mix = answers.mix(draw, 1)
    mix["mix"] = [answer for answer in mix["mix"] if answer != answers.rate_limits(1)[-1]]
    with Server(folder / "server", mix) as server:
        ledger, tries = Ledger(server.folder), 0
        while left:
            tries += 1
            check(tries < 100, f"{len(left)} chunks are never accepted")
            process = sandbox.run(server.dsn, "upload", "--max-retries", "2", *left, seconds=900)
            told = accepted_in(process.log)
            taken = ledger.taken_ids()
            wrong = [path.name for path in left if (str(path) in told) != (chunk_id_of(path) in taken)]
            check(not wrong, f"told otherwise than it was: {wrong}\n{process.log.read_text()}")
            left = [path for path in left if str(path) not in told]
            expected = LATER if left else (DONE,)
            check(process.returncode in expected, f"exit status {process.returncode}: {process.log.read_text()}")
        check(ledger.taken_ids() == known, "not all was accepted")
        ledger.check_pieces()
        ledger.check_repetitions(0)
    sandbox.check_clean()
    say(f"without a spool: {len(known)} chunks accepted, none again; {sandbox.runs} runs, {len(ledger.requests)} requests: "
        f"{ledger.actions()}")


def faults_while_recording(folder, options, draw):
    """Without a spool, and ended by ^C: what was not accepted then is kept as a file, and can be sent."""
    folder.mkdir()
    sandbox = Sandbox(folder, options.sentry_prof)
    if not sandbox.can_record(options.spin):
        return
    with Server(folder / "server", answers.mix(draw, 1, successes_each=4)) as server:
        ledger = Ledger(server.folder)
        with subprocess.Popen([options.spin, "3600"]) as target:
            try:
                recording = sandbox.start(server.dsn, "record", "-q", "-p", str(target.pid), "--upload", "--chunk-seconds", "0.1",
                                          "--max-retries", "0", "-o", f"{folder}/chunks/")
                wait_for(lambda: len(list((folder / "chunks").glob("*.json"))) > 1, 60, "the first chunks")
                time.sleep(options.record_seconds)
                recording.send_signal(signal.SIGINT)  # ends in seconds; by itself it would wait for the server
                recording.wait(60)
            finally:
                target.kill()
        known = {chunk_id_of(path) for path in (folder / "chunks").glob("*.json")}
        unsent = [path for place in (sandbox.place, folder / "chunks") for path in sorted(place.glob("unsent-*.envelope.gz"))]
        kept = {chunk_id_in_file(path) for path in unsent}
        check(len(known) > 1, "nothing was recorded")
        check(known == kept | ledger.taken_ids(), f"{len(known)} chunks, {len(kept)} kept, {len(ledger.taken_ids())} accepted")
        check(not kept & ledger.taken_ids(), "kept although it was accepted")
        tries = 0
        for path in unsent:
            while sandbox.run(server.dsn, "upload", "--max-retries", "0", path).returncode != DONE:
                tries += 1
                check(tries < 30 * len(unsent), f"{path.name} is never accepted")
            path.unlink()
        check(ledger.taken_ids() == known, "not all was accepted")
        ledger.check_pieces()
        ledger.check_repetitions(0)
    sandbox.check_clean()
    say(f"recording without a spool: {len(known)} chunks accepted, {len(unsent)} of them kept as files first; "
        f"{len(ledger.requests)} requests: {ledger.actions()}")


def exit_statuses(folder, options):
    """Of single uploads without another try."""
    folder.mkdir()
    chunk = write_chunks(folder / "chunks", 1, random.Random(0))[0]
    expected = ([(answer, 0) for answer in answers.successes()] + [(400, 1), (302, 2), (401, 3), (403, 3), (413, 4)] +
                [(answer, 5) for answer in answers.rate_limits(3600)] + [(answer, 6) for answer in answers.failures()])
    sandbox = Sandbox(folder, options.sentry_prof)

    def check_one(what, dsn, path, status):
        process = sandbox.run(dsn, "upload", "--max-retries", "0", path)
        check(process.returncode == status, f"{what}: exit status {process.returncode}, not {status}: {process.log.read_text()}")

    with Server(folder / "server", [answer for answer, _ in expected]) as server:
        for number, (answer, status) in enumerate(expected, 1):
            check_one(answer, server.dsn, chunk, status)
            check(server.requests() == number, f"{answer}: {server.requests()} requests, not {number}")
        bad = folder / "bad.json"
        bad.write_text('{"version": "2"}')
        check_one("an invalid file", server.dsn, bad, 1)
        check_one("no file", server.dsn, folder / "no.json", 7)
        check(server.requests() == len(expected), "sent what should not be sent")
    with closed_port() as port:
        check_one("nobody listens", dsn_of(port.getsockname()[1]), chunk, 6)
    check_one("no DSN", "", chunk, 2)
    sandbox.check_clean()
    say(f"exit statuses of {len(expected) + 4} uploads as documented")


def run_in(folder, options):
    draw = make_draw(options.seed)
    exit_statuses(folder / "statuses", options)
    faults_with_spool(folder / "spooled", options, draw)
    faults_without_spool(folder / "direct", options, draw)
    faults_while_recording(folder / "recorded", options, draw)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--chunks", type=int, default=1000)
    parser.add_argument("--direct-chunks", type=int, default=60)
    parser.add_argument("--spin", type=os.path.abspath, help="the program to record; without it nothing is recorded")
    parser.add_argument("--record-seconds", type=float, default=60)
    parser.add_argument("--long-stalls", action="store_true", help="also stalls that last until sentry-prof gives up (30 s)")
    options = parser.parse_args()
    try:
        if options.folder:
            options.folder.mkdir()
            return run_in(options.folder.resolve(), options)
        with tempfile.TemporaryDirectory(prefix="sentry-prof-faults-") as folder:
            return run_in(Path(folder), options)
    except Failed as failure:
        sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
