"""sentry-prof and perf behind the same few functions, so that both are measured alike."""

import json
import os
import re
import shutil
import subprocess

import measure

# A walk with one of these has reached the outermost function of its thread (a stripped program's own entry has no name).
ROOTS = re.compile(rb" (_start|__libc_start_main.*|_dl_start|clone3?|__clone.*)$")


class SentryProf:
    name = "sentry-prof"

    def __init__(self, program, directory, frequency_hz):
        self.program, self.frequency_hz = program, frequency_hz
        self.output = os.path.join(directory, "sentry-prof.json")
        self.summary = os.path.join(directory, "summary.json")

    def _arguments(self, *options):
        if os.path.exists(self.summary):
            os.unlink(self.summary)
        return [self.program, "record", "-q", "-F", str(self.frequency_hz), "-o", self.output,
                "--summary", self.summary, *options]

    def launch(self, command, stderr=None):
        return measure.run(self._arguments("--", *command), stderr=stderr)

    def start_attached(self, pid, duration_s=None):
        limit = [] if duration_s is None else ["-d", str(duration_s)]
        return measure.Run(self._arguments("-p", str(pid), *limit))

    def figures(self):
        """What the run that has ended recorded."""
        with open(self.summary, encoding="utf-8") as file:
            summary = json.load(file)
        walks = sum(summary["walk_ends"].values())
        return {
            "samples": summary["sample_records"],
            "complete": summary["samples_complete"] / walks if walks else None,
            "lost": summary["losses"]["ring_full"],
            "post_cpu_s": 0,
            "own_cpu_s": summary["profiler_cpu_s"],
            "own_peak_rss_bytes": summary["profiler_peak_rss_bytes"],
            "threads_attached": summary["threads_attached"],
            "attach_s": summary["duration_s"],
            "kernel_excluded": summary["kernel_excluded"],
        }


class Perf:
    """perf record, and perf script for what sentry-prof does on the way: the stacks."""

    name = "perf"

    def __init__(self, directory, frequency_hz, stack_bytes=65528):
        self.frequency_hz, self.stack_bytes = frequency_hz, stack_bytes
        self.data = os.path.join(directory, "perf.data")
        self.text = os.path.join(directory, "perf.txt")

    @staticmethod
    def is_installed():
        return shutil.which("perf") is not None and subprocess.run(
            ["perf", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False).returncode == 0

    def _arguments(self, *options):
        return ["perf", "record", "-q", "-F", str(self.frequency_hz), "-e", "cpu-clock", "--call-graph",
                f"dwarf,{self.stack_bytes}", "-o", self.data, *options]

    def launch(self, command, stderr=None):
        return measure.run(self._arguments("--", *command), stderr=stderr)

    def start_attached(self, pid, duration_s=None):
        limit = [] if duration_s is None else ["--", "sleep", str(duration_s)]
        return measure.Run(self._arguments("-p", str(pid), *limit))

    def script(self):
        with open(self.text, "wb") as out:
            return measure.run(["perf", "script", "--no-inline", "--show-lost-events", "-i", self.data,
                                "-F", "comm,tid,time,event,ip,sym"], stdout=out)

    def figures(self):
        post = self.script()
        samples = complete = lost = 0
        has_root = False
        with open(self.text, "rb") as text:
            for line in text:
                if b"PERF_RECORD_LOST" in line:
                    count = re.search(rb"lost(?: samples)? (\d+)", line)
                    lost += int(count.group(1)) if count else 1
                elif line.startswith(b"\t"):
                    has_root = has_root or ROOTS.search(line.rstrip()) is not None
                elif line.strip():
                    samples += 1
                else:
                    complete += has_root
                    has_root = False
        return {
            "samples": samples,
            "complete": complete / samples if samples else None,
            "lost": lost,
            "post_cpu_s": post.cpu_s,
            "post_wall_s": post.wall_s,
            "post_peak_rss_bytes": post.peak_rss_bytes,
        }
