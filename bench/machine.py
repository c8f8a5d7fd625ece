"""On which machine figures were measured, and the file that keeps them."""

import datetime
import os
import platform
import shutil
import subprocess

HEAD = """# Results

Measured by `scripts/bench`, newest first. "must" is the mark that was set for the figure; no test fails on a time.

"""


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def version_of(program):
    if shutil.which(program) is None:
        return f"no {program}"
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return text.splitlines()[0].strip() if text else program


def described(name, how):
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    load = os.getloadavg()[0]
    return (f"## {name}, {datetime.date.today().isoformat()}\n\n"
            f"{cpu_model()}, {os.cpu_count()} CPUs, {memory_gib():.0f} GiB; {system}, Linux {platform.release()}; "
            f"{version_of('perf')}; {version_of('clang++')}.\n"
            f"{how}; load average at the end {load:.1f}.")


def put_at_head(path, text):
    """Behind what stands before the first table."""
    head, tables = HEAD, ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            old = file.read()
        first = old.find("## ")
        head, tables = (old[:first], old[first:]) if first >= 0 else (old, "")
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + text + ("\n" + tables if tables else ""))
