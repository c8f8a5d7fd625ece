#!/usr/bin/env python3
"""scripts/bench record: what recording costs and how much of it is whole, beside perf."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import machine
import measure
from profilers import Perf, SentryProf

FREQUENCY_HZ = 997
THREADS_TO_ATTACH = 5000
# Prints what the command used of the CPU, with the shell that started it: as everything that is sampled.
TIMED = ["bash", "-c", '"$@"; times >&2', "timed"]


def compiler(output):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workload.cpp")
    return ["clang++", "-std=c++17", "-O2", "-c", source, "-o", output]


def cpu_seconds_told_by_times(path):
    """The sum of the four times that the shell's `times` wrote last."""
    with open(path, encoding="utf-8", errors="replace") as file:
        found = re.findall(r"(\d+)m([\d.,]+)s", file.read())[-4:]
    return sum(60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in found)


class Bench:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.tools = [SentryProf(options.sentry_prof, directory, FREQUENCY_HZ)]
        if Perf.is_installed():
            self.tools.append(Perf(directory, FREQUENCY_HZ))
        self.results = {tool.name: measure.Samples() for tool in self.tools}
        self.commands = [("user code", [options.spin, "3"]),
                         ("dd bs=1M", ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=60000"]),
                         ("dd bs=512", ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=8000000"])]

    def file(self, name):
        return os.path.join(self.directory, name)

    def say(self, text):
        print(f"==> {text}", file=sys.stderr, flush=True)

    def attached(self, tool, command):
        """The profiler is attached from outside: its usage is its own alone. That, and what it recorded."""
        target = subprocess.Popen(["bash", "-c", f"read; {command}", "waiting", *compiler(self.file("out.o"))],
                                  stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        profiler = tool.start_attached(target.pid)
        time.sleep(0.7)  # until it is attached; the target waits meanwhile
        target.communicate(b"\n")
        return profiler.wait(), tool.figures()

    def attach_to_compiler(self, tool):
        """Cost and wholeness."""
        out = self.results[tool.name]
        profiler, figures = self.attached(tool, 'exec "$@"')
        out.add("samples", figures["samples"])
        out.add("complete", figures["complete"])
        out.add("cpu_us", (profiler.cpu_s + figures["post_cpu_s"]) * 1e6 / max(1, figures["samples"]))
        out.add("peak", max(profiler.peak_rss_bytes, figures.get("post_peak_rss_bytes", 0)))
        if "own_cpu_s" in figures:
            out.add("told_cpu_us", figures["own_cpu_s"] * 1e6 / max(1, figures["samples"]))

    def attach_for_longer(self, tool):
        """Two compilations, one after the other: some 6 s."""
        out = self.results[tool.name]
        profiler, figures = self.attached(tool, '"$@"; "$@"')
        out.add("long_samples", figures["samples"])
        out.add("long_cpu_us", (profiler.cpu_s + figures["post_cpu_s"]) * 1e6 / max(1, figures["samples"]))
        out.add("long_peak", max(profiler.peak_rss_bytes, figures.get("post_peak_rss_bytes", 0)))

    def cost_in_the_target(self, tool):
        """What the kernel takes of the target's time to write a sample: at a rate that makes it visible, against a run alone."""
        often = type(tool)(*([tool.program] if isinstance(tool, SentryProf) else []), self.directory, 10 * FREQUENCY_HZ)
        cpu_s = []
        for launch in (measure.run, often.launch):
            times = self.file("times.txt")
            launch(TIMED + compiler(self.file("out.o")), stderr=times)
            cpu_s.append(cpu_seconds_told_by_times(times))
        self.results[tool.name].add("kernel_us", (cpu_s[1] - cpu_s[0]) * 1e6 / often.figures()["samples"])

    def two_busy_threads(self, tool):
        out = self.results[tool.name]
        two = ["bash", "-c", '"$@" & "$@" & wait', "two", *compiler("/dev/null")]
        tool.launch(two)
        figures = tool.figures()
        out.add("lost", figures["lost"])
        out.add("two_samples", figures["samples"])

    def busy_commands(self, tool):
        for name, command in self.commands:
            times = self.file("times.txt")
            tool.launch(TIMED + command, stderr=times)
            cpu_s = cpu_seconds_told_by_times(times)
            self.results[tool.name].add(name, tool.figures()["samples"] / (cpu_s * FREQUENCY_HZ))

    def wall_time_of_true(self):
        plain, added = [], {tool.name: [] for tool in self.tools}
        for _ in range(3 * self.options.runs):
            plain.append(measure.run(["true"]).wall_s)
            for tool in self.tools:
                wall_s = tool.launch(["true"]).wall_s
                if isinstance(tool, Perf):
                    wall_s += tool.script().wall_s
                added[tool.name].append(wall_s)
        for name, walls in added.items():
            self.results[name].add("true_ms", 1e3 * (statistics.median(walls) - statistics.median(plain)))

    def attach_to_many_threads(self, tool):
        out = self.results[tool.name]
        target = subprocess.Popen([self.options.idle_threads, str(THREADS_TO_ATTACH), "120"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if target.stdout.readline() != b"ready\n":
            raise SystemExit("bench: idle_threads could not start its threads")
        profiler = tool.start_attached(target.pid, 0.001).wait()
        target.kill()
        target.wait()
        out.add("attach_wall_s", profiler.wall_s)
        if isinstance(tool, SentryProf):
            figures = tool.figures()
            out.add("attach_s", figures["attach_s"])
            out.add("attached", figures["threads_attached"])

    def perf_with_its_default_stacks(self):
        perf = Perf(self.directory, FREQUENCY_HZ, 8192)
        perf.launch(compiler(self.file("out.o")))
        self.results["perf"].add("complete_8k", perf.figures()["complete"])

    def run_all(self):
        for number in range(self.options.runs):
            self.say(f"run {number + 1} of {self.options.runs}")
            for tool in self.tools:
                for part in (self.attach_to_compiler, self.attach_for_longer, self.cost_in_the_target, self.two_busy_threads,
                             self.busy_commands, self.attach_to_many_threads):
                    part(tool)
        if "perf" in self.results:
            self.perf_with_its_default_stacks()
        self.say("wall time of `true`")
        self.wall_time_of_true()


def number(value, pattern, scale=1):
    return "-" if value is None else pattern.format(value * scale)


def ratio(ours, theirs):
    return "-" if not ours or theirs is None else f"{theirs / ours:.1f}"


class Table:
    def __init__(self, results):
        self.ours = results["sentry-prof"]
        self.theirs = results.get("perf", measure.Samples())
        self.rows = [("figure", "must", "sentry-prof", "perf", "perf / sentry-prof")]

    def add(self, title, must, key, pattern, scale=1, pick=None, has_ratio=True):
        value = (lambda samples: samples.median(key)) if pick is None else (lambda s: s.worst(key, pick))
        ours, theirs = value(self.ours), value(self.theirs)
        self.rows.append((title, must, number(ours, pattern, scale), number(theirs, pattern, scale),
                          ratio(ours, theirs) if has_ratio else "-"))

    def text(self):
        return measure.table_text(self.rows)


def make_table(results):
    table = Table(results)
    table.add("walks complete", ">= 97 %", "complete", "{:.2f} %", 100)
    table.add("walks complete, perf with its default of 8 KiB", "", "complete_8k", "{:.2f} %", 100)
    table.add("samples lost, two busy threads (worst run)", "0", "lost", "{:.0f}", pick=max, has_ratio=False)
    table.add("samples / (CPU time x frequency), user code", ">= 97 %", "user code", "{:.2f} %", 100)
    table.add("the same, dd bs=1M", ">= 97 %", "dd bs=1M", "{:.2f} %", 100)
    table.add("the same, dd bs=512", ">= 97 %", "dd bs=512", "{:.2f} %", 100)
    table.add("CPU time a sample, all in", "<= 25 us", "cpu_us", "{:.1f} us")
    table.add("the same, as the summary tells it", "", "told_cpu_us", "{:.1f} us")
    table.add("peak memory", "<= 64 MiB", "peak", "{:.1f} MiB", 1 / (1 << 20))
    table.add("CPU time a sample, all in, two compilations", "<= 8 us", "long_cpu_us", "{:.1f} us")
    table.add("peak memory, two compilations", "<= 32 MiB", "long_peak", "{:.1f} MiB", 1 / (1 << 20))
    table.add("the kernel's time in the target, a sample", "", "kernel_us", "{:.1f} us")
    table.add("wall time that recording `true` adds", "<= 100 ms", "true_ms", "{:.1f} ms")
    table.add("attach to 5,000 threads", "<= 1 s", "attach_s", "{:.3f} s")
    table.add("the same, from start to end of the profiler", "", "attach_wall_s", "{:.3f} s")
    table.add("threads attached (fewest), of 5,001", "5001", "attached", "{:.0f}", pick=min)
    table.add("samples in a run (clang++)", "", "samples", "{:.0f}", has_ratio=False)
    table.add("samples in a run (two compilations)", "", "long_samples", "{:.0f}", has_ratio=False)
    table.add("samples in a run (two at a time)", "", "two_samples", "{:.0f}", has_ratio=False)
    return table.text()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentry-prof", required=True)
    parser.add_argument("--spin", required=True)
    parser.add_argument("--idle-threads", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", metavar="FILE", help="put the table at the head of FILE")
    options = parser.parse_args()
    if shutil.which("clang++") is None:
        raise SystemExit("bench: clang++ is not installed")
    measure.raise_open_file_limit()
    with tempfile.TemporaryDirectory(prefix="sentry-prof-bench-") as directory:
        bench = Bench(options, directory)
        if len(bench.tools) == 1:
            bench.say("perf is not installed (Debian: linux-perf): its column stays empty")
        bench.run_all()
    text = machine.described("record", f"{FREQUENCY_HZ} Hz, cpu-clock; medians of {options.runs} runs") + "\n\n" + make_table(bench.results) + "\n"
    print(text)
    if options.write:
        machine.put_at_head(options.write, text)


if __name__ == "__main__":
    main()
