#!/usr/bin/env python3
"""scripts/bench validate: what judging a V2 chunk of 50 MiB costs, beside simdjson and python3."""

import argparse
import os
import subprocess
import sys
import tempfile

import chunk_text
import machine
import measure

# The parts that are compared take turns: rounds of the runs that validate_bench makes in one go.
RUNS_IN_A_ROUND = 3
MIB = 1 << 20
JSON_LOAD = """
import json, sys, time
begin = time.process_time()
with open(sys.argv[1], "rb") as file:
    json.load(file)
print(time.process_time() - begin)
"""


def output_of(arguments):
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout


def add_times_in_memory(samples, options, path):
    output = output_of([options.validate_bench, path, str(RUNS_IN_A_ROUND)])
    for name, value in (line.split() for line in output.splitlines()):
        samples.add(name, float(value))


def add_command(samples, options, path):
    run = measure.run([options.sentry_prof, "validate", path])
    if run.status != 0:
        raise SystemExit(f"bench: `sentry-prof validate` ended with {run.status}")
    samples.add("command_s", run.cpu_s)
    samples.add("peak_bytes", run.peak_rss_bytes)


def measured(options, path):
    samples = measure.Samples()
    for number in range(options.runs):
        print(f"==> run {number + 1} of {options.runs}", file=sys.stderr, flush=True)
        add_times_in_memory(samples, options, path)
        samples.add("python_s", float(output_of([sys.executable, "-c", JSON_LOAD, path])))
        add_command(samples, options, path)
    return samples


def row_of_time(title, must, seconds, best):
    return (title, must, f"{seconds * 1e3:.1f} ms", f"{best['bytes'] / MIB / seconds:.0f} MiB/s",
            f"{best['simdjson_s'] / seconds:.2f}", f"{best['python_s'] / seconds:.1f}")


def make_table(samples):
    best = {name: samples.worst(name, min) for name in samples.values}
    peak_bytes = samples.worst("peak_bytes", max)
    rows = [("figure", "must", "measured", "speed", "x simdjson", "x json.load"),
            row_of_time("bare simdjson On-Demand pass, same fields", "", best["simdjson_s"], best),
            row_of_time("our JSON reader, same fields", "", best["reader_s"], best),
            row_of_time("validate(), in memory", ">= 0.6 x simdjson, >= 3 x json.load", best["validate_s"], best),
            row_of_time("python3, json.load", "", best["python_s"], best),
            row_of_time("sentry-prof validate, the whole command", "", best["command_s"], best),
            ("its peak memory (worst run)", f"<= {3 * best['bytes'] / MIB + 32:.0f} MiB", f"{peak_bytes / MIB:.1f} MiB",
             f"{peak_bytes / best['bytes']:.2f} x the file", "", "")]
    return measure.table_text(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentry-prof", required=True)
    parser.add_argument("--validate-bench", required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--write", metavar="FILE", help="put the table at the head of FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sentry-prof-bench-") as directory:
        path = os.path.join(directory, "chunk.json")
        subprocess.run([sys.executable, "-B", chunk_text.__file__, path], check=True)
        samples = measured(options, path)
    how = f"V2 chunk of {samples.median('bytes') / MIB:.1f} MiB, CPU times; best of {options.runs * RUNS_IN_A_ROUND} runs " \
          f"in memory, of {options.runs} of the others"
    text = machine.described("validate", how) + "\n\n" + make_table(samples) + "\n"
    print(text)
    if options.write:
        machine.put_at_head(options.write, text)


if __name__ == "__main__":
    main()
