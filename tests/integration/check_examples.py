#!/usr/bin/env python3
"""check_examples.py SENTRY_PROF PROJECT_ROOT: is what the documentation and the examples for fleets say accepted by the program?

Every command `sentry-prof ...` of the README, the documents, the man pages and the help is run: `record` and `upload` with
--print-config, so that nothing is recorded or sent; `validate` on files that are not there. The systemd unit's and the pod's
shell lines are run as they stand, with stand-ins for systemctl, pidof and sentry-prof.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

WRONG_USAGE = 2
OPERATORS = set("|&;<>()")

program, root = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
work = Path(tempfile.mkdtemp(prefix="sentry-prof-examples-"))
environment = {"PATH": f"{work}/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(work), "LC_ALL": "C.UTF-8"}
for name, value in os.environ.items():
    if name.endswith("SAN_OPTIONS"):
        environment[name] = value
failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED: {what}")


def run(arguments):
    return subprocess.run(arguments, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)


# ---- Commands in texts -----------------------------------------------------------------------------------------------------

def sentry_prof_commands(line):
    """The arguments of each call of sentry-prof in a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words, commands = [], []
    for word in lexer:
        if set(word) <= OPERATORS:
            commands.append(words)
            words = []
        else:
            words.append(word)
    for words in [*commands, words]:
        while words and (re.fullmatch(r"\w+=.*", words[0]) or words[0] in ("sudo", "env", "exec", "-i")):
            words = words[1:]
        if words and words[0] == "sentry-prof":
            yield words[1:]


def lines_of_code(text):
    """Of Markdown: indented by four, or between fences."""
    is_fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith("    "):
            yield line


def lines_of_man_page(text):
    for block in re.findall(r"^\.EX$(.*?)^\.EE$", text, re.M | re.S):
        yield from block.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\").splitlines()


def lines_of_help(subcommand):
    """What stands behind two blanks is the explanation."""
    text = run([program, subcommand, "--help"]).stdout
    for line in text[text.index("Examples:"):].splitlines():
        yield re.split(r"\s{2,}", line.strip())[0]


def try_command(arguments, where):
    what = f"{where}: sentry-prof {shlex.join(arguments)}"
    arguments = ["1" if "$" in argument else argument for argument in arguments]
    if arguments[0] in ("record", "upload"):
        arguments.insert(1, "--print-config")
        result = run([program, *arguments])
        check(result.returncode == 0, f"{what}: {result.stderr}")
    else:
        result = run([program, *arguments])
        check(result.returncode not in (WRONG_USAGE, 125) and result.returncode >= 0, f"{what}: {result.stderr}")


def check_texts():
    sources = [(path.name, lines_of_code(path.read_text())) for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]]
    sources += [(path.name, lines_of_man_page(path.read_text())) for path in sorted((root / "man").glob("*.[17]"))]
    sources += [(f"{name} --help", lines_of_help(name)) for name in ("record", "validate", "upload", "convert")]
    count = 0
    for where, lines in sources:
        for line in lines:
            if "sentry-prof " not in line:
                continue
            for arguments in sentry_prof_commands(line):
                count += 1
                try_command(arguments, where)
    check(count >= 30, f"only {count} commands were found in the documentation")
    print(f"{count} commands of the documentation tried")


# ---- The examples for fleets -----------------------------------------------------------------------------------------------

def write_stand_ins():
    """sentry-prof shows its configuration; the service's processes are 12 and 34."""
    (work / "cgroup" / "shop").mkdir(parents=True)
    (work / "cgroup" / "shop" / "cgroup.procs").write_text("12\n34\n")
    (work / "bin").mkdir()
    for name, script in {"sentry-prof": f'subcommand=$1; shift; exec "{program}" "$subcommand" --print-config "$@"',
                         "systemctl": f'[ "$*" = "show -P ControlGroup shop.service" ] && echo "/../../..{work}/cgroup/shop"',
                         "pidof": '[ "$*" = shop ] && echo 34 12'}.items():
        path = work / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


def check_shell_line(line, expected, where):
    result = run(["/bin/sh", "-c", line])
    check(result.returncode == 0, f"{where}: {result.stderr}")
    for name, value in expected.items():
        is_set = re.search(rf"^{name} +{re.escape(value)} +# command line$", result.stdout, re.M)
        check(is_set, f"{where}: {name} is not {value}:\n{result.stdout}")


def check_systemd_unit():
    path = root / "packaging" / "systemd" / "sentry-prof@.service"
    text = path.read_text().replace("\\\n", "")

    def line_of(directive):
        command = re.search(rf"^{directive}=\+?(.*)$", text, re.M).group(1).replace("%i", "shop")
        check("${" not in command, f"{path.name}: systemd expands ${{...}} by itself")
        shell, option, line = shlex.split(command)
        check((shell, option) == ("/bin/sh", "-c"), f"{path.name}: {shell} {option}")
        return line

    environment["STATE_DIRECTORY"] = "/var/lib/sentry-prof/shop"
    environment["RUNTIME_DIRECTORY"] = str(work / "runtime")
    (work / "runtime").mkdir()
    line = line_of("ExecStart")
    (work / "runtime" / "cgroup").write_text("\n")  # as of a service that does not run
    result = run(["/bin/sh", "-c", line])
    check((result.returncode, result.stderr) == (1, "shop.service has no processes\n"), f"{path.name}: {result}")
    result = run(["/bin/sh", "-c", line_of("ExecStartPre")])
    check(result.returncode == 0, f"{path.name}: {result.stderr}")
    check_shell_line(line, {"pid": "12,34", "upload": "true", "spool": "/var/lib/sentry-prof/shop", "transaction": "shop"}, path.name)
    # The names of directives, where systemd is there to know them. The man pages and the service are not installed here.
    (work / "shop.service").write_text("[Service]\nExecStart=/bin/true\n")
    environment["SYSTEMD_UNIT_PATH"] = f"{work}:"
    unit = work / "sentry-prof@shop.service"
    unit.write_text(path.read_text().replace("exec sentry-prof", f"exec {work}/bin/sentry-prof"))
    try:
        result = run(["systemd-analyze", "verify", "--man=no", str(unit)])
    except FileNotFoundError:
        print("systemd-analyze is not installed: names of directives are not checked")
        return
    check(result.returncode == 0 and result.stderr == "", f"systemd-analyze verify: {result.stderr}")


def check_kubernetes():
    path = root / "docs" / "examples" / "kubernetes.yaml"
    try:
        import yaml
    except ImportError:
        print("python3-yaml is not installed: the examples for Kubernetes and Relay are not checked")
        return
    pod = yaml.safe_load(path.read_text())
    check(pod["spec"]["shareProcessNamespace"] is True, f"{path.name}: the sidecar sees no processes")
    sidecar = next(one for one in pod["spec"]["containers"] if one["name"] == "sentry-prof")
    check(sidecar["command"] == ["/bin/sh", "-c"], f"{path.name}: command")
    check_shell_line(sidecar["args"][0], {"pid": "34,12", "upload": "true", "spool": "/spool/sentry-prof", "transaction": "shop"}, path.name)
    mounts = {mount["name"]: mount["mountPath"] for mount in sidecar["volumeMounts"]}
    check(mounts == {volume["name"]: "/spool" for volume in pod["spec"]["volumes"]}, f"{path.name}: the spool's volume")
    relay = yaml.safe_load((root / "docs" / "examples" / "relay.yml").read_text())
    check(relay["relay"]["mode"] == "managed" and relay["relay"]["port"] == 3000, "relay.yml")


write_stand_ins()
check_texts()
check_systemd_unit()
check_kubernetes()
subprocess.run(["rm", "-rf", str(work)], check=True)
print("0 failed" if failures == 0 else f"{failures} failed")
sys.exit(failures != 0)
