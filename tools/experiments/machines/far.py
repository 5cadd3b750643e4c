# SPDX-License-Identifier: GPL-2.0
"""A host's half of a session, which session.py starts by ssh.

A request is a row of JSON on stdin, an answer a row of JSON on stdout with the request's number.
A row without an answer, each BEAT seconds, shows that the host lives.  Everything that a request
changes is restored, in reverse order, when the session ends: at the request `end`, at the end of
stdin (ssh's connection is closed), after PATIENCE seconds without a request, and at a signal.

The load generator is in memory (memfd), so that no file remains.  This file uses the standard
library only, and Python from 3.8 on, because hosts of a lab may be older than the machine that
starts it.
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

# Seconds without a request after which the other end is gone.  It sends one each PING seconds
# (session.py).
PATIENCE = 30
# Seconds between rows that show that this host lives; PATIENCE of session.py is four of them.
BEAT = 5


def sysctl_path(name):
    """The file of a sysctl, by its name with dots."""
    return "/proc/sys/" + name.replace(".", "/")


def read(path):
    """The text of a file, or None."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def in_memory(data):
    """The descriptor of a file in memory with these bytes."""
    memory = os.memfd_create("greenlane-load")
    with os.fdopen(os.dup(memory), "wb") as file:
        file.write(data)
    return memory


def run(argv, env=None):
    """(exit status, stdout, stderr) of a command; 127 if there is no such program."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.PIPE, universal_newlines=True, errors="replace",
                              env=dict(os.environ, **(env or {})))
    except OSError as why:
        return 127, "", "%s: %s" % (argv[0], why.strerror)
    return done.returncode, done.stdout, done.stderr


class Far:
    """The changes of a session, and the load generator."""

    def __init__(self):
        self.before = {}            # {sysctl that has been changed: its value before}
        self.undo = []              # commands
        self.child = self.memory = None
        self.lock = threading.Lock()
        self.ending = False         # the session ends

    def answer(self, number, **fields):
        """Write an answer; without a reader, the end of stdin ends the session.  The row feed
        before it ends what the user's shell may have printed."""
        with self.lock, contextlib.suppress(BrokenPipeError):
            print("\n" + json.dumps(dict(fields, number=number)), flush=True)

    def beat(self):
        """Show that this host lives."""
        while True:
            time.sleep(BEAT)
            self.answer(None)

    # Requests: the method do_NAME() returns the answer's fields.

    def do_read(self, paths):
        """The texts of files."""
        return {"texts": {path: read(path) for path in paths}}

    def do_run(self, argv, undo=None, env=None):
        """Run a command; if it succeeds, `undo` will restore the state before it."""
        if undo:            # before the command: a signal may follow it
            self.undo.append((undo, env))
        status, out, err = run(argv, env)
        if undo and status:
            self.undo.pop()
        return {"status": status, "out": out, "err": err}

    def do_status(self):
        """`greenlane status`, which remembers this look nowhere."""
        with tempfile.TemporaryDirectory(prefix="greenlane-") as here:
            return {"out": run(["greenlane", "status", "--json", "--state", here + "/state"])[1]}

    def do_sysctl(self, values):
        """Set these sysctls, if they exist, and restore all others that the session has changed."""
        changed = {name: value for name, value in values.items() if self.remember(name)}
        for name, value in {**self.before, **changed}.items():
            self.write(name, value)
        return {"before": self.before}

    def remember(self, name):
        """Remember the present value; does the sysctl exist?"""
        if name not in self.before:
            text = read(sysctl_path(name))
            if text is None:
                return False
            self.before[name] = text.strip()
        return True

    @staticmethod
    def write(name, value):
        """Set a sysctl."""
        with open(sysctl_path(name), "w", encoding="ascii") as file:
            file.write(str(value))

    def do_program(self, binary):
        """Receive the load generator."""
        self.memory = in_memory(base64.b64decode(binary))
        return {}

    def do_compile(self, files, argv):
        """Compile the load generator here: files are {name: text}; argv ends with -o."""
        with tempfile.TemporaryDirectory(prefix="greenlane-") as here:
            for name, text in files.items():
                path = os.path.join(here, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            status, _, err = run(["env", "-C", here, *argv, "load"])
            if not status:
                with open(os.path.join(here, "load"), "rb") as file:
                    self.do_program(base64.b64encode(file.read()))
        return {"status": status, "err": err}

    def do_start(self, argv, numbers, text=None):
        """Start the load generator.  Its rows answer these numbers, the last one when it ends.  A
        file of `text` is its last argument."""
        err, files = tempfile.TemporaryFile("w+"), [self.memory]
        if text is not None:
            files.append(in_memory(text.encode()))
            argv = argv + ["/proc/self/fd/%d" % files[1]]
        self.child = subprocess.Popen(
            argv, executable="/proc/self/fd/%d" % self.memory, pass_fds=files,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, universal_newlines=True)
        for file in files[1:]:
            os.close(file)
        threading.Thread(target=self.wait, args=(self.child, err, numbers), daemon=True).start()
        return {}

    def do_tell(self):
        """Tell the load generator to go on; wait() answers if it has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write("\n")
            self.child.stdin.flush()
        return {}

    def wait(self, child, err, numbers):
        """Answer with the load generator's rows, unless the session has ended it.  If it ends
        early, that answers all numbers that are left."""
        left = list(numbers)
        while len(left) > 1:
            row = child.stdout.readline()
            if not row:
                break
            self.answer(left.pop(0), status=0, out=row)
        text = child.stdout.read()
        child.wait()
        err.seek(0)
        why = err.read()
        for number in left:
            if not self.ending:
                self.answer(number, status=child.returncode, out=text, err=why)

    def restore(self):
        """Restore the host; returns the errors.  Nothing here waits for the other end."""
        if self.child:
            self.child.kill()
            self.child.wait()
        wrong = []
        for command, env in self.undo[::-1]:
            status, _, err = run(command, env)
            if status:
                wrong.append("%s: %s" % (" ".join(command), err.strip()))
        for name, value in self.before.items():
            try:
                self.write(name, value)
            except OSError as why:
                wrong.append("%s=%s: %s" % (name, value, why.strerror))
        self.undo, self.before = [], {}
        return wrong

    def serve(self, request):
        """Answer a request; its key `do` names it."""
        name, number = request.pop("do"), request.pop("number")
        try:
            self.answer(number, **getattr(self, "do_" + name)(**request))
        except (OSError, ValueError) as why:
            self.answer(number, error=str(why))


def requests():
    """The requests of stdin, until its end or PATIENCE."""
    text = b""
    while select.select([0], [], [], PATIENCE)[0]:
        data = os.read(0, 1 << 20)
        if not data:
            return
        *rows, text = (text + data).split(b"\n")
        for row in rows:
            yield json.loads(row)


def only_one():
    """Lock this host, in the sense of its network namespace, for the session: two experiments would
    restore each other's settings."""
    path = "/run/greenlane-lab-%d" % os.stat("/proc/self/ns/net").st_ino
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def main():
    """A session."""
    try:
        if not os.geteuid():
            only_one()
    except BlockingIOError:
        sys.exit("another experiment runs on this host, or it is in the lab twice")
    except OSError as why:
        sys.exit("no lock: %s" % why)
    far, end = Far(), None

    def signalled(*_):
        if not far.ending:          # a second one must not end the restoration
            far.ending = True
            sys.exit(1)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signalled)
    try:
        far.answer(0, ready=os.geteuid(), machine=os.uname().machine, release=os.uname().release)
        threading.Thread(target=far.beat, daemon=True).start()
        for request in requests():
            if request["do"] == "end":
                end = request["number"]
                break
            if request["do"] != "ping":
                far.serve(request)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        far.ending = True
        wrong = far.restore()
        if end:
            far.answer(end, wrong=wrong)
        # A thread may be writing to an end that does not read.
        os._exit(0 if end else 1)


main()
