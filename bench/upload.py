#!/usr/bin/env python3
"""scripts/bench upload: memory of `record --upload` over hundreds of chunks, of an upload of 50 MiB, and the time that a spool
with thousands of files takes."""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import chunk_text
import machine
import measure

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "faults"))
import harness  # noqa: E402

CHUNK_S = 0.1  # the shortest
EARLY, LATE = 50, 500  # chunks
SPOOLED_FILES = 5000
MIB = 1 << 20


def use_dsn(dsn):
    os.environ["SENTRY_DSN"] = dsn


def rss_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def rss_around(process, count, chunks):
    """The median of what is resident while `count()` goes from `chunks` - 10 to `chunks`."""
    harness.wait_for(lambda: count() >= chunks - 10, chunks * CHUNK_S * 5 + 30, f"{chunks} chunks")
    values = []
    while count() < chunks:
        values.append(rss_bytes(process.pid))
        time.sleep(0.02)
    return statistics.median(values)


def rss_over_chunks(options, arguments, count):
    with subprocess.Popen([options.spin, "3600"]) as target:
        command = [options.sentry_prof, "record", "-q", "-p", str(target.pid), "-F", "997", "--chunk-seconds", str(CHUNK_S),
                   "--upload", *arguments]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                return rss_around(process, count, EARLY), rss_around(process, count, LATE)
            finally:
                target.kill()
                process.wait()


def rows_of_recording(options, folder):
    with harness.Server(folder / "server-of-recording", [200]) as server:
        use_dsn(server.dsn)
        yield row_of_growth("server takes all", *rss_over_chunks(options, [], server.requests))
    with harness.closed_port() as port:
        use_dsn(harness.dsn_of(port.getsockname()[1]))
        spool = folder / "spool-of-recording"
        figures = rss_over_chunks(options, ["--spool", spool], lambda: len(os.listdir(spool)) if spool.exists() else 0)
        yield row_of_growth("server away, --spool", *figures)


def row_of_growth(name, early, late):
    return (f"resident after {EARLY} and {LATE} chunks, {name}", "growth <= 10 %",
            f"{early / MIB:.1f} and {late / MIB:.1f} MiB, {100 * (late - early) / early:+.1f} %")


def rows_of_large_file(options, folder):
    path = folder / "chunk.json"
    subprocess.run([sys.executable, "-B", chunk_text.__file__, path], check=True)
    with harness.Server(folder / "server-of-file", [200]) as server:
        use_dsn(server.dsn)
        for compression in ("gzip", "zstd", "none"):
            for name, spool in (("", []), (", --spool", ["--spool", folder / "spool-of-file"])):
                run = measure.run([options.sentry_prof, "upload", "--compress", compression, *spool, path])
                check_status(run, 0)
                times = run.peak_rss_bytes / path.stat().st_size
                yield (f"peak of an upload of {path.stat().st_size / MIB:.1f} MiB, {compression}{name}", "<= 3 x the file",
                       f"{run.peak_rss_bytes / MIB:.1f} MiB, {times:.2f} x")


def small_chunks(folder):
    golden, draw = json.loads(harness.GOLDEN.read_text()), random.Random(1)
    folder.mkdir()
    for number in range(SPOOLED_FILES):
        path = folder / f"{number}.json"
        path.write_text(json.dumps(dict(golden, chunk_id=harness.hex_id(draw))))
        yield path


def rows_of_spool(options, folder):
    upload = [options.sentry_prof, "upload", "-q", "--max-retries", "0", "--spool", folder / "spool"]
    with harness.closed_port() as port:
        use_dsn(harness.dsn_of(port.getsockname()[1]))
        run = measure.run([*upload, *small_chunks(folder / "chunks")])
    check_status(run, 6)
    yield row_of_time("to put", run)
    with harness.Server(folder / "server-of-spool", [200]) as server:
        use_dsn(server.dsn)
        run = measure.run(upload)
    check_status(run, 0)
    yield row_of_time("to send", run)


def row_of_time(what, run):
    return (f"{what} {SPOOLED_FILES} small files of a spool", "", f"{run.cpu_s:.1f} s CPU time, {run.wall_s:.1f} s in all")


def check_status(run, expected):
    if run.status != expected:
        raise SystemExit(f"bench: `sentry-prof upload` ended with {run.status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentry-prof", required=True)
    parser.add_argument("--spin", required=True)
    parser.add_argument("--write", metavar="FILE", help="put the table at the head of FILE")
    options = parser.parse_args()
    rows = [("figure", "must", "measured")]
    with tempfile.TemporaryDirectory(prefix="sentry-prof-bench-") as directory:
        for part in (rows_of_large_file, rows_of_spool, rows_of_recording):
            for row in part(options, Path(directory)):
                print(f"==> {row}", file=sys.stderr, flush=True)
                rows.append(row)
    how = f"recording one busy thread at 997 Hz in chunks of {CHUNK_S} s; one run of each"
    text = machine.described("upload", how) + "\n\n" + measure.table_text(rows) + "\n"
    print(text)
    if options.write:
        machine.put_at_head(options.write, text)


if __name__ == "__main__":
    main()
