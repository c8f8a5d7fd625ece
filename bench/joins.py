#!/usr/bin/env python3
"""scripts/bench joins: how often the outer part of a stack that is deeper than its copy is another stack's."""

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile

import machine
import measure
import stacks

PROGRAMS = ("clang++", "python3", "node", "sqlite3", "gdb")
FREQUENCY_HZ = 997


class RawRecorder(stacks.Recorder):
    """Each run leaves a raw log with as much of each stack as the kernel gives."""

    def __init__(self, program, directory):
        super().__init__(program, directory)
        self.logs = []

    def start(self, frequency_hz, *how):
        self.logs.append(os.path.join(self.directory, f"{len(self.logs)}.raw"))
        return super().start(frequency_hz, "--raw-log", self.logs[-1], *how)


def record_raw_logs(recorder):
    for name, program, record in stacks.workloads(recorder.directory):
        if name in PROGRAMS and shutil.which(program) is not None:
            stacks.say(name)
            record(recorder, FREQUENCY_HZ)


def verdicts(profile):
    """Of stacks of random_descents: of one piece, of two, cut. The first and the last function have the number of the descent."""
    frames, found = profile["frames"], {"right": 0, "wrong": 0, "cut": 0}
    numbers = {name: {index: match[1] for index, frame in enumerate(frames) if (match := re.search(rf"::{name}<(\d+)", frame.get("function", "")))}
               for name in ("first", "last")}
    for sample in profile["samples"]:
        stack = profile["stacks"][sample["stack_id"]]
        first, last = ([numbers[name][index] for index in stack if index in numbers[name]] for name in ("first", "last"))
        if last:
            found["cut" if not first else "right" if first == last else "wrong"] += 1
    return found


def table_of_descents(recorder, program):
    rows = [("stacks of random_descents", "of one descent", "of two", "cut")]
    for length_ms, paths in ((1, 0), (3, 0), (8, 0), (30, 0), (3, 2), (8, 2), (30, 2), (100, 2)):
        kind = f"{paths} in turn" if paths else "at random"
        stacks.say(f"descents of {length_ms} ms, {kind}")
        recorder.launched(FREQUENCY_HZ, [program, "6", "400", str(length_ms), str(paths)])
        with open(os.path.join(recorder.directory, "out.json"), encoding="utf-8") as file:
            found = verdicts(json.load(file)["profile"])
        rows.append((f"that stay {length_ms} ms, {kind}", str(found["right"]), str(found["wrong"]), str(found["cut"])))
    return measure.table_text(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentry-prof", required=True)
    parser.add_argument("--joined-walks", required=True)
    parser.add_argument("--random-descents", required=True)
    parser.add_argument("--write", metavar="FILE", help="put the tables at the head of FILE")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="sentry-prof-bench-") as directory:
        recorder = RawRecorder(options.sentry_prof, directory)
        record_raw_logs(recorder)
        stacks.say("joining")
        joined = subprocess.run([options.joined_walks, *recorder.logs], stdout=subprocess.PIPE, text=True, check=True).stdout
        descents = table_of_descents(stacks.Recorder(options.sentry_prof, directory), options.random_descents)
    tables = [[tuple(cell.strip() for cell in line.split("|")) for line in table.splitlines()] for table in joined.strip().split("\n\n")]
    text = (machine.described("joins", f"one recording of each of {', '.join(PROGRAMS)} at {FREQUENCY_HZ} Hz, cut and joined: joined / wrongly")
            + "\n\n" + "\n\n".join(measure.table_text(rows) for rows in tables) + "\n\n" + descents + "\n\n")
    print(text)
    if options.write:
        machine.put_at_head(options.write, text)


main()
