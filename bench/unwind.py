#!/usr/bin/env python3
"""scripts/bench unwind: what a walk costs by the frame, beside perf script and libunwind on the same work."""

import argparse
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import machine
import measure
from profilers import Perf

FREQUENCY_HZ = 997


def compiler(output):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workload.cpp")
    return ["clang++", "-std=c++17", "-O2", "-c", source, "-o", output]


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def record_raw_log(program, directory):
    log = os.path.join(directory, "raw.log")
    subprocess.run([program, "record", "-q", "-F", str(FREQUENCY_HZ), "--raw-log", log, "-o", os.path.join(directory, "out.json"),
                    "--", *compiler(os.path.join(directory, "out.o"))], check=True)
    return log


def walk_figures(bench, log):
    lines = subprocess.run([bench, log], check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines)}


def hotspot_parser():
    """What KDAB's hotspot reads perf.data with; it unwinds by libdw. Debian: hotspot."""
    found = glob.glob("/usr/lib/*/libexec/hotspot-perfparser")
    return found[0] if found else None


def peers_ns_a_frame(directory):
    """CPU time, all in, of perf script and of hotspot-perfparser on one perf.data, by the frames that perf script prints."""
    perf = Perf(directory, FREQUENCY_HZ)
    perf.launch(compiler(os.path.join(directory, "out.o")))
    cpu_s = {"perf": perf.script().cpu_s}
    if hotspot_parser():
        cpu_s["hotspot"] = measure.run([hotspot_parser(), "--input", perf.data, "--output", "/dev/null"]).cpu_s
    with open(perf.text, "rb") as text:
        frames = sum(line.startswith(b"\t") for line in text)
    return {name: value * 1e9 / frames for name, value in cpu_s.items()} if frames else {}


def libunwind_sentence(runs):
    """How far its figures stand for the same work."""
    if not runs:
        return ""
    same, at_root = (f"{100 * runs[0][name] / runs[0]['samples']:.2f} %" for name in ("same", "at_root"))
    return f"libunwind gives the very frames of ours in {same} of the samples, and says of {at_root} that their root was reached.\n"


def make_table(runs, libunwind_runs, peers_ns):
    def peer(name):
        return f"{peers_ns[name]:.0f}" if name in peers_ns else "-"

    def cell(name, of=runs):
        return f"{statistics.median(run[name] for run in of):.1f}" if of else "-"

    def libunwind(name):
        return cell(name, libunwind_runs)
    rows = [("ns a frame", "must", "walk alone", "with the thread's last walk"),
            ("stack in the cache", "<= 12", cell("warm"), cell("warm_remembered")),
            ("each sample once, stack not in the cache", "<= 70", cell("cold"), cell("cold_remembered")),
            ("the first time: tables read, rules made", "", cell("first"), cell("first_remembered")),
            ("the slowest of these walks, in ms", "<= 50", f"{max(run['slowest_walk_ms'] for run in runs):.1f}", ""),
            ("libunwind, on the same samples, in memory: stack in the cache", "", libunwind("warm"), ""),
            ("the same, each sample once", "", libunwind("cold"), ""),
            ("libunwind without its system calls: stack in the cache", "", libunwind("warm_unmasked"), ""),
            ("the same, each sample once", "", libunwind("cold_unmasked"), ""),
            ("perf script --no-inline, all in", "", peer("perf"), ""),
            ("hotspot-perfparser, all in", "", peer("hotspot"), "")]
    samples, complete = runs[0]["samples"], runs[0]["complete"]
    return (measure.table_text(rows) + f"\n\n{samples:.0f} samples of {runs[0]['frames_a_sample']:.1f} frames; {100 * complete / samples:.2f} % "
            "complete by what the kernel copied alone. The rightmost column is how recordings walk; there the tables are in the page cache\n"
            "already the first time.\n" + libunwind_sentence(libunwind_runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentry-prof", required=True)
    parser.add_argument("--unwind-bench", required=True)
    parser.add_argument("--libunwind-bench", metavar="PROGRAM", help="left out if it was not built")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", metavar="FILE", help="put the table at the head of FILE")
    options = parser.parse_args()
    if shutil.which("clang++") is None:
        raise SystemExit("bench: clang++ is not installed")
    with tempfile.TemporaryDirectory(prefix="sentry-prof-bench-") as directory:
        say("recording")
        log = record_raw_log(options.sentry_prof, directory)
        say("walking")
        runs = [walk_figures(options.unwind_bench, log) for _ in range(options.runs)]
        libunwind_runs = []
        if options.libunwind_bench and os.path.exists(options.libunwind_bench):
            say("libunwind")
            libunwind_runs = [walk_figures(options.libunwind_bench, log) for _ in range(options.runs)]
        say("perf and hotspot")
        peers_ns = peers_ns_a_frame(directory) if Perf.is_installed() else {}
    text = machine.described("unwind", f"clang++ at {FREQUENCY_HZ} Hz; medians of {options.runs} runs over one raw log") + "\n\n" + \
        make_table(runs, libunwind_runs, peers_ns) + "\n"
    print(text)
    if options.write:
        machine.put_at_head(options.write, text)


if __name__ == "__main__":
    main()
