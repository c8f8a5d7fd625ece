"""Running programs for a benchmark: what they cost, figures over several runs, and tables of them."""

import os
import resource
import statistics
import subprocess
import time


class Run:
    """One program from its start to its end. cpu_s includes children that it waited for."""

    def __init__(self, arguments, stdout=subprocess.DEVNULL, stderr=None, stdin=subprocess.DEVNULL):
        self.begin = time.monotonic()
        self.error_file = None if stderr is None else open(stderr, "wb")
        self.process = subprocess.Popen(arguments, stdin=stdin, stdout=stdout,
                                        stderr=self.error_file or subprocess.DEVNULL)
        self.wall_s = self.cpu_s = self.peak_rss_bytes = self.status = None

    def wait(self):
        _, status, usage = os.wait4(self.process.pid, 0)
        self.wall_s = time.monotonic() - self.begin
        self.status = os.waitstatus_to_exitcode(status)
        self.process.returncode = self.status
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_rss_bytes = usage.ru_maxrss * 1024
        if self.error_file:
            self.error_file.close()
        return self


def run(arguments, **options):
    return Run(arguments, **options).wait()


def raise_open_file_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Samples:
    """Figures by name, each from several runs."""

    def __init__(self):
        self.values = {}

    def add(self, name, value):
        if value is not None:
            self.values.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.values[name]) if name in self.values else None

    def worst(self, name, pick):
        return pick(self.values[name]) if name in self.values else None


def table_text(rows):
    """Rows of cells as a Markdown table; the first is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
