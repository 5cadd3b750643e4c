#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane status as root, with hostile users.

Names of processes, namespaces and devices have control characters for terminals, and other users
create files in place of the state file.
"""
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

from lab.net import modules
from lab.net.namespace import Namespace
from lab.status import STATE, exit_status, forget, look, tool
from lab.tap import case, equal, main, need_tree, true, within
from lab.wire.wire import Wire

USER = 1000
DIRECTORY = os.path.dirname(STATE)
# Text that a script may search for, a cursor movement, and a byte that is not UTF-8.
NAME = b"x\x1b[1A\nNo m\xff"
VISIBLE = "x\\x1b[1A\\x0aNo m\\xff"


def harmless(text):
    """Check that a text has only printable characters and its own line ends."""
    equal([c for c in text if not c.isprintable() and c != "\n"], [],
          f"control characters in {text!r}")
    equal([line for line in text.splitlines() if line.startswith("No m")],
          [line for line in text.splitlines() if line == "No mistake found."], "forged text lines")


# --- names

@contextlib.contextmanager
def process_named(name):
    """A process with this name, in a network namespace of its own, which is shown by that name."""
    code = ("import os, sys; sys.stdin.buffer.readline(); "
            f"open('/proc/self/comm', 'wb').write({name!r}); print(flush=True); input()")
    with subprocess.Popen(["unshare", "-n", sys.executable, "-c", code], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        try:
            yield process
        finally:
            process.communicate(b"\n")


@case("a process's name, also as that of its namespace, is shown without control characters")
def process_name():
    modules.load("tcp_tlt")
    with process_named(NAME):
        forget()
        names = [ns["name"] for ns in look()["namespaces"].values()]
        true(any(name.startswith(VISIBLE + "[") for name in names),
             f"the process's name in {names}")
        _, out, err = tool("status", "--all")
        harmless(out + err)
        true(VISIBLE in out, f"the process's name in the text: {out}")


@case("a namespace's name is shown without control characters")
def namespace_name():
    modules.load("tcp_tlt")
    subprocess.run([b"ip", b"netns", b"add", NAME], check=True)
    try:
        forget()
        names = [ns["name"] for ns in look()["namespaces"].values()]
        true(VISIBLE in names, f"the namespace's name in {names}")
        _, out, err = tool("status", "--all")
        harmless(out + err)
        true(VISIBLE in out, f"the namespace's name in the text: {out}")
    finally:
        subprocess.run([b"ip", b"netns", b"del", NAME], check=True)


@case("a device's name is shown without control characters, also by tc")
def device_name():
    modules.load("sch_color")
    modules.load("sch_iofd")
    dev = b"x\x1b[1A\xff\\"
    shown = "x\\x1b[1A\\xff\\x5c"
    ns = Namespace("devices")
    try:
        with ns:
            for words in ([b"link", b"add", dev, b"type", b"dummy"], [b"link", b"set", dev, b"up"],
                          [b"link", b"add", b"plain", b"type", b"dummy"],
                          [b"link", b"set", b"plain", b"up"]):
                subprocess.run([b"ip", *words], check=True)
            for words in ([b"dev", dev, b"root", b"color", b"limit", b"1m", b"red", b"100k"],
                          [b"dev", b"plain", b"root", b"iofd", b"threshold", b"100k", b"deflect",
                           b"dev", dev, b"via", b"10.0.0.1"]):
                subprocess.run([b"tc", b"qdisc", b"add", *words], check=True)
        forget()
        said = look()
        true(shown in [port["dev"] for port in said["ports"].values()],
             f"the device's name in {said['ports']}")
        _, out, err = tool("status", "--all")
        harmless(out + err)
        true(shown in out, f"the device's name in the text: {out}")
        for options in ([], ["-j"]):
            with ns:
                text = subprocess.run(["tc", *options, "qdisc", "show", "dev", "plain"], check=True,
                                      capture_output=True).stdout
            equal(b"\x1b" in text, False, f"an escape in {text}")
            true(shown.replace("\\", "\\\\" if options else "\\").encode() in text,
                 f"the device's name in {text}")
    finally:
        ns.remove()


@case("status does not wait for a lingering socket whose owner has exited")
def lingers():
    sys.path.insert(0, os.path.dirname(need_tree("tools/greenlane")))
    from greenlane import sockets
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server = listener.accept()[0]
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 30))
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:             # unread data, for which close() would wait
            client.send(bytes(1 << 16))
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    sockets._close(client)      # pylint: disable=protected-access
    within(time.clock_gettime(time.CLOCK_MONOTONIC) - began, 0, 1, "time of the close, s")
    server.close()


# --- the state file

def clear():
    """Remove the state file and its directory."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if os.path.islink(DIRECTORY) or not os.path.isdir(DIRECTORY):
            os.unlink(DIRECTORY)
        else:
            shutil.rmtree(DIRECTORY)


def status(*words, warning=None):
    """Run status --json; checks its exit status, and that stderr has only this warning."""
    code, out, err = tool("status", "--json", *words)
    said = json.loads(out)
    equal(code, exit_status(said), f"exit status; stderr: {err}")
    equal(err.count("\n"), int(warning is not None), f"lines of text in {err!r}")
    true((warning or "") in err, f"{warning!r} in {err!r}")
    return said


@case("only root can read and write the state file, with any umask")
def modes():
    clear()
    old = os.umask(0)
    try:
        status()
    finally:
        os.umask(old)
    equal([os.lstat(path).st_mode & 0o7777 for path in (DIRECTORY, STATE)], [0o700, 0o600],
          "modes of directory and file")
    equal(os.listdir(DIRECTORY), ["status.json"], "files")
    true(status()["since"], "the second look knows the first")


def users_directory():
    """Create a directory in which another user may write."""
    os.mkdir(DIRECTORY, 0o755)
    os.chown(DIRECTORY, USER, USER)


def open_directory():
    """Create a directory in which every user may write, as with a umask of 0."""
    os.mkdir(DIRECTORY)
    os.chmod(DIRECTORY, 0o777)


def linked_directory():
    """Create a link to a directory of root."""
    os.makedirs("/run/elsewhere", 0o700, exist_ok=True)
    os.symlink("/run/elsewhere", DIRECTORY)


def linked_file():
    """Create a link to a file of root."""
    os.mkdir(DIRECTORY, 0o700)
    os.symlink("/run/victim", STATE)


def users_file():
    """Create a file of another user."""
    os.mkdir(DIRECTORY, 0o700)
    with open(STATE, "w", encoding="ascii") as file:
        file.write("{}")
    os.chown(STATE, USER, USER)


def fifo():
    """Create a pipe without a writer."""
    os.mkdir(DIRECTORY, 0o700)
    os.mkfifo(STATE)


@case("a path that another user has prepared for the state file is not read and not written to,"
      " and is reported in one line of text",
      what=(users_directory, open_directory, linked_directory, linked_file, users_file, fifo))
def planted(what):
    clear()
    with open("/run/victim", "w", encoding="ascii") as file:
        file.write("victim")
    what()
    for _ in range(2):
        said = status(warning="so the look is not remembered")
        equal(said["since"], None, "since")
    with open("/run/victim", encoding="ascii") as file:
        equal(file.read(), "victim", "the file behind the link")
    for path in ("/run/elsewhere", DIRECTORY):
        if os.path.isdir(path):
            equal([name for name in os.listdir(path) if name != "status.json"], [],
                  f"files in {path}")
    clear()


def damages(good):
    """Invalid contents of a state file."""
    whole = json.loads(good)
    yield good[:len(good) // 2]
    yield "\0" * 100
    yield "[" * 100_000
    yield json.dumps([whole])
    for key in whole:
        if key not in ("version", "boot"):
            yield json.dumps({k: v for k, v in whole.items() if k != key})
            yield json.dumps({**whole, key: "x"})
    yield json.dumps({**whole, "namespaces": {"1": {"counters": {"Kicks": "x"}}}})
    yield json.dumps({**whole, "ports": {"1": {}}})


@case("a damaged state file is discarded with one line of text, and the next look knows the last")
def damaged():
    clear()
    status()
    with open(STATE, encoding="utf-8") as file:
        good = file.read()
    for text in damages(good):
        with open(STATE, "w", encoding="utf-8") as file:
            file.write(text)
        equal(status(warning="was damaged, and is discarded")["since"], None,
              f"since, after {text[:60]}")
        true(status()["since"], "since, of the next look")
    # A file of another boot or version is not damaged.
    for key in ("boot", "version"):
        with open(STATE, "w", encoding="utf-8") as file:
            json.dump({**json.loads(good), key: 0}, file)
        equal(status()["since"], None, f"since, after another {key}")


@case("--state: readers with separate files do not consume each other's changes")
def readers():
    modules.load("tcp_tlt")
    clear()
    with Wire(cc="tlt_reno") as wire:
        files = ["/run/alert.json", "/run/human.json"]
        for path in files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            equal(status("--state", path)["since"], None, "the first look's since")
        client, server = wire.connect()
        wire.transfer(client, server, 100_000)
        grown = []
        for path in files:
            ns, = [ns for ns in status("--state", path)["namespaces"].values()
                   if ns["name"] == wire.a.name]
            grown.append(ns["change"]["ImportantSent"])
        true(grown[0] > 0 and grown[0] == grown[1], f"ImportantSent grew by {grown}")
        equal(os.path.exists(STATE), False, "the common file exists")
        equal([os.lstat(path).st_mode & 0o777 for path in files], [0o600] * 2, "modes of the files")
        # An empty file, as of mktemp, counts as a first look.
        with open(files[0], "w", encoding="ascii"):
            pass
        equal(status("--state", files[0])["since"], None, "since, of an empty file")


@case("--state: a file of another program is refused and not changed")
def others_file():
    os.makedirs("/run/dir", exist_ok=True)
    with open("/run/text", "w", encoding="ascii") as file:
        file.write("important")
    with open("/run/theirs", "w", encoding="ascii") as file:
        file.write("")
    os.chown("/run/theirs", USER, USER)
    with contextlib.suppress(FileNotFoundError):
        os.unlink("/run/link")
    os.symlink("/run/text", "/run/link")
    before = {name: os.lstat(f"/run/{name}") for name in ("dir", "text", "theirs", "link")}
    for path in ("/run/dir", "/run/text", "/run/theirs", "/run/link", "/dev/null", "/none/there",
                 "/run/text/below", ""):
        code, out, err = tool("status", "--state", path)
        equal((code, err.count("\n")), (2, 1), f"--state {path}: {err!r}")
    for name, was in before.items():
        now = os.lstat(f"/run/{name}")
        equal((now.st_ino, now.st_mtime_ns), (was.st_ino, was.st_mtime_ns),
              f"inode and mtime of /run/{name}")
    code, out, err = tool("status", "--state", "/run/x", "--watch")
    equal((code, out, err.count("\n")), (2, "", 1), f"with --watch: {err!r}")


if __name__ == "__main__":
    main()
