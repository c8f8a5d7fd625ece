#!/usr/bin/env python3
"""scripts/bench stacks: how many live walks are complete, in programs that others wrote and in stacks of 1 MiB; and what
recording costs the target."""

import argparse
import contextlib
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import machine
import measure

PYTHON_WORK = """
import json, re, time
end = time.monotonic() + 6
words = [str(i * 7919) for i in range(20000)]
while time.monotonic() < end:
    text = json.dumps({word: sorted(words[:50], key=lambda w: w[::-1]) for word in words[:500]}, indent=1)
    sum(len(m.group()) for m in re.finditer(r"[0-9]+7", text))
    json.loads(text)
"""

NODE_WORK = """
const end = Date.now() + 6000;
const depth = (n) => n === 0 ? JSON.stringify(Array.from({length: 200}, (_, i) => ({i, s: String(i * 7919)}))).length : depth(n - 1) + 1;
let sum = 0;
while (Date.now() < end) { sum += depth(60); sum += [...'the quick brown fox'.repeat(50)].sort().join('').replace(/o+/g, 'u').length; }
if (sum < 0) console.log(sum);
"""

SQLITE_WORK = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000000)
SELECT count(DISTINCT i % 1000), sum(length(printf('%d-%d', i, i * 7))) FROM n WHERE i LIKE '%7%' ORDER BY 1;
"""

GDB_WORK = 'for i in range(250000): gdb.parse_and_eval("(%d + 1) * sizeof(long) %% 7" % i)'


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


class Recorder:
    """Runs of sentry-prof, and what their summaries say."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.summary = os.path.join(directory, "summary.json")

    def start(self, frequency_hz, *how):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.summary)
        return subprocess.Popen([self.program, "record", "-q", "-F", str(frequency_hz), "-o", os.path.join(self.directory, "out.json"),
                                 "--summary", self.summary, *how], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def figures(self):
        with open(self.summary, encoding="utf-8") as file:
            return json.load(file)

    def launched(self, frequency_hz, command):
        self.start(frequency_hz, "--", *command).wait()
        return self.figures()

    def attached(self, frequency_hz, pid, work):
        """Attaches, runs `work`, and ends."""
        profiler = self.start(frequency_hz, "-p", str(pid))
        time.sleep(0.5)
        work()
        profiler.send_signal(signal.SIGINT)
        profiler.wait()
        return self.figures()


@contextlib.contextmanager
def server(command, **options):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        time.sleep(1.5)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def quiet(command):
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def record_redis(recorder, frequency_hz):
    socket = os.path.join(recorder.directory, "redis.sock")
    with server(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", recorder.directory]) as redis:
        return recorder.attached(frequency_hz, redis.pid, lambda: quiet(
            ["redis-benchmark", "-s", socket, "-q", "-n", "300000", "-P", "8", "-t", "set,get,lpush,lrange_100,zadd,mset"]))


def as_postgres():
    """PostgreSQL refuses root."""
    return ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.geteuid() == 0 else []


def postgres_programs():
    places = [os.environ.get("PATH", ""), *glob.glob("/usr/lib/postgresql/*/bin")]
    return [shutil.which(name, path=":".join(places)) for name in ("initdb", "postgres", "pgbench")]


def record_postgres(recorder, frequency_hz):
    initdb, postgres, pgbench = postgres_programs()
    with tempfile.TemporaryDirectory(prefix="sentry-prof-bench-pg-") as directory:
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres", "postgres")
        data = os.path.join(directory, "data")
        quiet([*as_postgres(), initdb, "-D", data, "-A", "trust", "--no-sync"])
        client = [*as_postgres(), pgbench, "-h", directory, "postgres"]
        with server([*as_postgres(), postgres, "-D", data, "-k", directory, "-c", "listen_addresses="]) as postmaster:
            quiet([*client, "-i", "-s", "5"])
            return recorder.attached(frequency_hz, postmaster.pid, lambda: quiet([*client, "-c", "2", "-T", "6", "-S"]))


def workloads(directory):
    """Name, what has to be installed, and how to record it."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workload.cpp")
    object_file = os.path.join(directory, "out.o")
    script = os.path.join(directory, "work.js")
    with open(script, "w", encoding="utf-8") as file:
        file.write(NODE_WORK)

    def launch(*command):
        return lambda recorder, hz: recorder.launched(hz, command)
    compile_twice = f"for i in 1 2; do clang++ -std=c++17 -O2 -c {source} -o {object_file}; done"
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"  # not a version manager's shim
    return [
        ("clang++", "clang++", launch("bash", "-c", compile_twice)),
        ("python3", python, launch(python, "-c", PYTHON_WORK)),
        ("redis-server", "redis-benchmark", record_redis),
        ("postgres", postgres_programs()[2] or "pgbench", record_postgres),
        ("node", "node", launch("node", script)),
        ("sqlite3", "sqlite3", launch("sqlite3", ":memory:", SQLITE_WORK)),
        ("gdb", "gdb", launch("gdb", "-nx", "-batch", "-ex", "info functions Parse.*Expr", "-ex", f"python {GDB_WORK}", large_library())),
    ]


def large_library():
    """Something for gdb to read."""
    found = glob.glob("/usr/lib/*/libLLVM*.so*") or ["/proc/self/exe"]
    return max(found, key=os.path.getsize)


def complete_cell(figures):
    walks = sum(figures["walk_ends"].values())
    return f"{100 * figures['samples_complete'] / walks:.2f} %" if walks else "-"


def row_of(name, must, figures):
    ends = {end: count for end, count in figures["walk_ends"].items() if count and end != "root"}
    rest = ", ".join(f"{end} {count}" for end, count in sorted(ends.items(), key=lambda item: -item[1]))
    lost = {cause: count for cause, count in figures["losses"].items() if count and cause not in ("duplicate", "outside_process")}
    rest += "".join(f", lost: {cause} {count}" for cause, count in lost.items())
    return (name, must, complete_cell(figures), str(figures["samples"]), str(figures["samples_with_live_frames"]),
            str(figures["samples_with_joined_frames"]), rest.removeprefix(", "))


def table_of_stacks(recorder, deep):
    rows = [("walks complete at 997 Hz", "must", "measured", "samples", "with live frames", "with joined frames", "the rest")]
    for name, program, record in workloads(recorder.directory):
        if shutil.which(program) is None:
            rows.append((name, ">= 99.5 %", f"no {program}", "", "", "", ""))
            continue
        say(name)
        rows.append(row_of(name, ">= 99.5 %", record(recorder, 997)))
    for frequency_hz in (101, 997):
        say(f"1 MiB at {frequency_hz} Hz")
        rows.append(row_of(f"stacks of 1 MiB, {frequency_hz} Hz", ">= 99 %", recorder.launched(frequency_hz, [deep, "1000", "4", "1000"])))
    say("large frames")
    rows.append(row_of("frames of 500 KB, 997 Hz", ">= 99 %", recorder.launched(997, [deep, "2", "4", "500000"])))
    return measure.table_text(rows)


def table_of_overhead(recorder, pairs):
    """Pairs of runs, alone and recorded, in turn: a machine that drifts does so for both."""
    work = os.path.join(recorder.directory, "work.sh")
    with open(work, "w", encoding="utf-8") as file:
        file.write("for i in 1 2; do (i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done) & done; wait\n")
    command = ["bash", work]
    alone, recorded = [], []
    for pair in range(pairs):
        say(f"overhead, pair {pair + 1} of {pairs}")
        alone.append(measure.run(["bash", "-c", 'time -p "$@"', "timed", *command], stderr=work + ".1"))
        profiler_command = [recorder.program, "record", "-q", "-o", os.path.join(recorder.directory, "out.json"), "--"]
        recorded.append(measure.run([*profiler_command, "bash", "-c", 'time -p "$@"', "timed", *command], stderr=work + ".2"))
        alone[-1].told, recorded[-1].told = told_times(work + ".1"), told_times(work + ".2")
    rows = [("two busy threads, 101 Hz", "alone, median", "recorded, median", "difference of pairs, median", "least and most",
             "alone, least and most")]
    for label, pick in (("wall time", lambda told: told["real"]), ("CPU time", lambda told: told["user"] + told["sys"])):
        a, r = [pick(run.told) for run in alone], [pick(run.told) for run in recorded]
        middle = statistics.median(a)
        percent = [100 * (y - x) / middle for x, y in zip(a, r)]
        rows.append((label, f"{middle:.3f} s", f"{statistics.median(r):.3f} s", f"{statistics.median(percent):+.2f} %",
                     f"{min(percent):+.2f} to {max(percent):+.2f} %",
                     f"{100 * (min(a) - middle) / middle:+.2f} to {100 * (max(a) - middle) / middle:+.2f} %"))
    return measure.table_text(rows)


def told_times(path):
    with open(path, encoding="utf-8") as file:
        words = [line.split() for line in file if line.startswith(("real", "user", "sys"))]
    return {name: float(value) for name, value in words}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentry-prof", required=True)
    parser.add_argument("--deep", required=True, help="the test target of that name")
    parser.add_argument("--runs", type=int, default=10, help="pairs of runs for the overhead")
    parser.add_argument("--write", metavar="FILE", help="put the tables at the head of FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sentry-prof-bench-") as directory:
        recorder = Recorder(options.sentry_prof, directory)
        stacks = table_of_stacks(recorder, options.deep)
        overhead = table_of_overhead(recorder, options.runs) if options.runs else ""
    text = machine.described("stacks", f"one recording of each; {options.runs} pairs of runs for the overhead") + "\n\n" + \
        stacks + "\n\n" + overhead + "\n\n"
    print(text)
    if options.write:
        machine.put_at_head(options.write, text)


if __name__ == "__main__":
    main()
