#!/usr/bin/env python3
"""Reads the #include lines of src/ and include/ and fails on an arrow that ARCHITECTURE.md ("Folders") forbids, and on a header that
lives by what others include before it.

usage: check_includes.py PROJECT     checks the tree
       check_includes.py --self-test checks that each rule is able to fail, on small trees made for it
"""

import re
import sys
import tempfile
from pathlib import Path

# Folder of src/ -> the other folders it may include. include/sentry_prof is open to all.
ALLOWED = {
    "base": set(),
    "os": {"base"},
    "compress": {"base"},
    "unwind": {"base"},
    "profile": {"base"},
    "elf": {"unwind", "compress", "base"},
    "symbols": {"elf", "base"},
    "sentry": {"profile", "base"},
    "upload": {"sentry", "base", "os"},
    "sampling": {"base", "os"},
    "target": {"elf", "unwind", "base", "os"},
    "formats": {"sampling", "compress", "base"},
    "recorder": {"sampling", "target", "unwind", "symbols", "profile", "base", "os", "elf"},
    "cli": {"base", "os", "compress", "unwind", "profile", "elf", "symbols", "sentry", "upload", "sampling", "target", "recorder",
            "formats"},
}

# elf knows of unwinding only what a row and a register are, and what a table of rows looks like from outside.
ELF_MAY_NOT_USE = re.compile(r"unwind/(walk|rule_cache|stack_snapshot)")

# Pure code works on bytes in memory. What a source file of <folder>_lib (not <folder>_linux_lib) reaches through
# headers of ours must not bring in the system.
PURE = {"formats", "compress", "unwind", "profile", "elf", "sentry", "upload", "sampling", "target", "symbols", "base"}
SYSTEM = re.compile(
    r"os/|curl/|unistd\.h|fcntl\.h|poll\.h|pthread\.h|signal\.h|dirent\.h|time\.h|ctime|thread|fstream|filesystem"
    r"|sys/(?!types\.h)|linux/"
)
# Facts of an interface, or the one thing that a pure folder is about.
SYSTEM_EXCEPTIONS = {
    ("sampling", "linux/perf_event.h"),
    ("sampling", "linux/bpf.h"),
    ("formats", "linux/perf_event.h"),
}
# <chrono> also has the calendar, which pure code may use; a clock it may not.
CLOCK = re.compile(r"\b\w+_clock::now\b|\bclock_gettime\b|\bgettimeofday\b")

# Outside libraries that only one folder may know, or none: those are the tests' oracles.
LIBRARIES = [
    (re.compile(r"(libelf|gelf)\.h|elfutils/|dwarf\.h|simdjson"), set()),
    (re.compile(r"libiberty/"), {"symbols"}),
    (re.compile(r"zlib\.h|zstd\.h"), {"compress", "upload"}),
    (re.compile(r"lzma\.h"), {"compress"}),
    (re.compile(r"curl/"), {"upload"}),
    (re.compile(r"CLI/"), {"cli"}),
]

# What headers name of the standard library -> the header that has it.
STANDARD = {
    "array": "array", "atomic": "atomic", "deque": "deque", "function": "functional", "map": "map", "mutex": "mutex",
    "optional": "optional", "set": "set", "shared_ptr": "memory", "span": "span", "string": "string", "string_view": "string_view",
    "thread": "thread", "unique_ptr": "memory", "unordered_map": "unordered_map", "unordered_set": "unordered_set",
    "variant": "variant", "vector": "vector",
}
STANDARD_NAME = re.compile(r"\bstd::(" + "|".join(STANDARD) + r")\b")

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
LIBRARY = re.compile(r"^(\w+)_lib\s*=\s*static_library\(", re.MULTILINE)
EXTENSIONS = {".h", ".cpp", ".c"}


def includes_of(path):
    """Every include of a file as (text between the marks, whether it was in quotes)."""
    return [(m[1] or m[2], bool(m[1])) for m in INCLUDE.finditer(path.read_text(encoding="utf-8"))]


def argument_text(text, start):
    """What stands between the parenthesis before `start` and the one that closes it."""
    depth = 1
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[start:i]
    return text[start:]


def pure_sources(folder):
    """The source files that src/X/meson.build lists in X_lib."""
    build = folder / "meson.build"
    text = re.sub(r"#.*", "", build.read_text(encoding="utf-8")) if build.exists() else ""
    for match in LIBRARY.finditer(text):
        if match[1] == folder.name:
            return [folder / name for name in re.findall(r"'([\w/]+\.cpp)'", argument_text(text, match.end()))]
    return []


def check_arrows(project):
    problems = []
    for path in sorted((project / "include").rglob("*.h")):
        for name, quoted in includes_of(path):
            if quoted and not name.startswith("sentry_prof/"):
                problems.append(f"{path.relative_to(project)}: a public header may not include {name}")
    for path in sorted((project / "src").rglob("*")):
        if path.suffix not in EXTENSIONS:
            continue
        folder = path.relative_to(project / "src").parts[0]
        if folder not in ALLOWED:
            problems.append(f"src/{folder} is not in the table of check_includes.py")
            continue
        where = path.relative_to(project)
        for name, _ in includes_of(path):
            other = name.split("/")[0]
            if other in ALLOWED and (project / "src" / name).exists() and other not in ALLOWED[folder] | {folder}:
                problems.append(f"{where}: {folder} may not include {name}")
            if folder == "elf" and ELF_MAY_NOT_USE.match(name):
                problems.append(f"{where}: elf may not include {name}")
            for pattern, homes in LIBRARIES:
                if pattern.match(name) and folder not in homes:
                    who = f"only {', '.join(sorted(homes))}" if homes else "nobody"
                    problems.append(f"{where}: {who} may include <{name}>")
    return problems


def check_pure_source(project, source, folder):
    """Follows a pure source file through our own headers and reports the system's."""
    problems, seen, todo = [], set(), [(source, [])]
    while todo:
        path, way = todo.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        if CLOCK.search(path.read_text(encoding="utf-8")):
            problems.append(f"pure code reads a clock: {path.relative_to(project)}")
        for name, _ in includes_of(path):
            if SYSTEM.match(name) and (folder, name) not in SYSTEM_EXCEPTIONS:
                trail = " -> ".join([*way, str(path.relative_to(project)), name])
                problems.append(f"pure code reaches the system: {trail}")
                continue
            for root in ("src", "include"):
                todo.append((project / root / name, [*way, str(path.relative_to(project))]))
    return problems


def check_headers(project):
    problems = []
    for root in ("src", "include"):
        for path in sorted((project / root).rglob("*.h")):
            code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
            included = {name for name, _ in includes_of(path)}
            for header in sorted({STANDARD[name] for name in STANDARD_NAME.findall(code)} - included):
                problems.append(f"{path.relative_to(project)}: includes no <{header}>, which it needs")
    return problems


def check(project):
    problems = check_arrows(project) + check_headers(project)
    for folder in sorted((project / "src").iterdir()):
        if folder.name in PURE:
            for source in pure_sources(folder):
                problems += check_pure_source(project, source, folder.name)
    return problems


def self_test():
    """Each case is a tree of files and a part of the one message it must give (None: it must pass)."""
    cases = [
        ({"src/unwind/a.h": '#include "base/b.h"\n', "src/base/b.h": ""}, None),
        ({"src/unwind/a.h": '#include "elf/b.h"\n', "src/elf/b.h": ""}, "unwind may not include elf/b.h"),
        ({"src/unwind/a.h": '#  include <elf/b.h>\n', "src/elf/b.h": ""}, "unwind may not include elf/b.h"),
        ({"src/recorder/a.cpp": '#include "sentry/b.h"\n', "src/sentry/b.h": ""}, "recorder may not include"),
        ({"src/elf/a.h": '#include "unwind/walk.h"\n', "src/unwind/walk.h": ""}, "elf may not include"),
        ({"src/new/a.h": ""}, "src/new is not in the table"),
        ({"include/sentry_prof/a.h": '#include "base/b.h"\n'}, "a public header may not include base/b.h"),
        ({"src/base/a.h": "#include <span>\nvoid f(std::span<int>);  // std::map\n"}, None),
        ({"src/base/a.h": "void f(std::span<int>);\n"}, "src/base/a.h: includes no <span>"),
        ({"src/report.h": ""}, "src/report.h is not in the table"),
        ({"src/sentry/a.cpp": "#include <simdjson.h>\n"}, "nobody may include <simdjson.h>"),
        ({"src/sentry/a.cpp": "#include <lzma.h>\n"}, "only compress may include <lzma.h>"),
        ({"src/target/a.cpp": '#include "target/b.h"\n', "src/target/b.h": '#include "os/c.h"\n', "src/os/c.h": "",
          "src/target/meson.build": "target_linux_lib = static_library('target_linux', files('a.cpp'))\n"}, None),
        ({"src/target/a.cpp": '#include "target/b.h"\n', "src/target/b.h": '#include "os/c.h"\n', "src/os/c.h": "",
          "src/target/meson.build": "target_lib = static_library('target', files('a.cpp'))\n"},
         "src/target/a.cpp -> src/target/b.h -> os/c.h"),
        ({"src/unwind/a.cpp": "#include <fstream>\n",
          "src/unwind/meson.build": "unwind_lib = static_library('unwind', files(\n  'a.cpp'))\n"}, "a.cpp -> fstream"),
        ({"src/sentry/a.cpp": "#include <chrono>\nauto now() { return std::chrono::system_clock::now(); }\n",
          "src/sentry/meson.build": "sentry_lib = static_library('sentry', files('a.cpp'))\n"}, "pure code reads a clock"),
        ({"src/sentry/a.cpp": "#include <chrono>\nstd::chrono::year year(2026);\n",
          "src/sentry/meson.build": "sentry_lib = static_library('sentry', files('a.cpp'))\n"}, None),
        ({"src/sampling/a.cpp": "#include <linux/perf_event.h>\n",
          "src/sampling/meson.build": "sampling_lib = static_library('sampling', files('a.cpp'))\n"}, None),
    ]
    for number, (files, expected) in enumerate(cases):
        with tempfile.TemporaryDirectory() as name:
            project = Path(name)
            for folder in ("src", "include"):
                (project / folder).mkdir()
            for path, text in files.items():
                (project / path).parent.mkdir(parents=True, exist_ok=True)
                (project / path).write_text(text)
            problems = check(project)
            good = not problems if expected is None else any(expected in problem for problem in problems)
            if not good:
                return [f"self-test case {number}: expected {expected!r}, got {problems}"]
    return []


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = self_test() if sys.argv[1] == "--self-test" else check(Path(sys.argv[1]).resolve())
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
