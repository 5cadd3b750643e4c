# SPDX-License-Identifier: GPL-2.0
"""ssh connections to the hosts of a lab, one each, with far.py at the other end.

The user's ~/.ssh/config applies.  BatchMode: ssh asks for no password.  far.py is an argument of
the remote python3, so the remote shell sees only base64.  All requests of a session use one
connection.
"""

import base64
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import threading
import time
import zlib

from lab.net.namespace import Counting

# Seconds between requests that only show that this end lives; PATIENCE of far.py is six of them.
PING = 5
# Seconds without a row of the host after which it is dead; it sends one each BEAT (far.py).
PATIENCE = 20
# Seconds for a login.
_READY = 60
# Keepalives of ssh: a host that does not answer for 15 s is dead.
_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
        "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
# Seconds for all commands that restore a host.
_RESTORE = 30


class Dead(Exception):
    """A host cannot be reached, or one of its commands failed; the message begins with its name."""


def _python():
    """far.py as a command for any shell."""
    text = pathlib.Path(__file__).with_name("far.py").read_bytes()
    packed = base64.b64encode(zlib.compress(text)).decode()
    program = f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{packed}')))"
    return f"python3 -c {shlex.quote(program)}"


class Session(Counting):
    """The session of a host of lab.toml (inventory.Host).

    A thread reads the host's answers, and gives each to the request with its number.
    """

    def __init__(self, host):
        self.host, self.before, self.undo = host, {}, []
        self._requests, self._answers = itertools.count(1), {}  # {number: Future}
        self._lock = threading.Lock()       # of _answers and _reason
        self._writing = threading.Lock()    # of ssh's stdin
        self._reason = None                 # why the connection has ended
        self._rows = []                     # Futures of the load generator's rows
        self._heard = time.monotonic()
        self._stderr = tempfile.TemporaryFile("w+")
        command = [*_SSH, *["-p", str(host.port)] * bool(host.port),
                   *["-l", host.user] * bool(host.user), *host.options, "--", host.ssh,
                   "sudo -n " * host.sudo + _python()]
        ready = self._answers[0] = concurrent.futures.Future()
        try:
            # ^C must not end ssh before the host has been restored.
            self._ssh = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._stderr, text=True, errors="replace",
                                         start_new_session=True)
        except FileNotFoundError:
            raise Dead("no ssh: install openssh-client") from None
        self._end = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        self.facts = self._result(ready, _READY)
        threading.Thread(target=self._ping, daemon=True).start()

    def _read(self):
        """Give each answer to its request.  The remote user's shell may print other rows first."""
        for row in self._ssh.stdout:
            self._heard = time.monotonic()
            with contextlib.suppress(ValueError):
                answer = json.loads(row)
                if isinstance(answer, dict) and isinstance(answer.get("number"), int):
                    with self._lock:
                        future = self._answers.pop(answer["number"], None)
                    if future:
                        future.set_result(answer)
        self._ssh.wait()
        with self._lock:
            self._reason = self._reason or self._why()
            waiting, self._answers = self._answers, {}
        for future in waiting.values():
            future.set_exception(self._dead())

    def _ping(self):
        """Show that this end lives, and end a connection whose host does not."""
        woke = time.monotonic()
        while not self._end.wait(PING):
            late, woke = time.monotonic() - woke > 2 * PING, time.monotonic()
            if late:        # this end was stopped: rows of the host may wait
                self._heard = woke
            if time.monotonic() - self._heard > PATIENCE:
                self._give_up(f"no sign of life for {PATIENCE} s")
                return
            if self._writing.acquire(blocking=False):   # another request shows it as well
                self._writing.release()
                self._write({"do": "ping"})

    def _give_up(self, reason):
        with self._lock:
            self._reason = self._reason or reason
        with contextlib.suppress(ProcessLookupError):       # also the processes that ssh has started
            os.killpg(self._ssh.pid, signal.SIGKILL)

    def _dead(self):
        return Dead(f"{self.host.name}: {self._reason}{self._state()}")

    def _write(self, request):
        """Send a request; _read() reports a closed connection."""
        with self._writing, contextlib.suppress(BrokenPipeError, ValueError):
            print(json.dumps(request), file=self._ssh.stdin, flush=True)

    def _expect(self):
        """(number, Future) of an answer."""
        number, future = next(self._requests), concurrent.futures.Future()
        with self._lock:
            if self._reason:
                raise self._dead()
            self._answers[number] = future
        return number, future

    def _result(self, future, seconds):
        """A Future's answer; a host that does not answer in time is given up."""
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            self._give_up(f"no answer for {seconds:g} s")
            return future.result()          # raises Dead

    def _why(self):
        self._stderr.seek(0)
        rows = [row for row in self._stderr.read().splitlines() if row.strip()]
        return rows[-1] if rows else f"ssh ended with status {self._ssh.returncode}"

    def _state(self):
        """The changes that the host has to restore by itself."""
        changed = [f"{name} (was {value})" for name, value in self.before.items()]
        changed += [" ".join(argv) for argv in self.undo]
        if not changed:
            return ""
        return f"; it restores by itself, if it still runs: {', '.join(changed)}"

    def _ask(self, name, seconds, **fields):
        """A request and its answer; raises Dead."""
        number, future = self._expect()
        self._write(dict(fields, do=name, number=number))
        return self._result(future, seconds)

    def call(self, name, seconds=60, **fields):
        """A request and its answer; raises Dead, also if the request failed."""
        answer = self._ask(name, seconds, **fields)
        if "error" in answer:
            raise Dead(f"{self.host.name}: {answer['error']}")
        return answer

    def read(self, path):
        """The text of a file of the host."""
        text = self.call("read", paths=[path])["texts"][path]
        if text is None:
            raise FileNotFoundError(path)
        return text

    def run(self, *argv, undo=None, may_fail=False, env=None):
        """The stdout of a command, whose effect `undo` restores; None if it failed and may."""
        done = self.call("run", argv=argv, undo=undo, env=env)
        if done["status"] and not may_fail:
            why = done["err"].strip() or f"exit status {done['status']}"
            raise Dead(f"{self.host.name}: {' '.join(argv)}: {why}")
        self.undo += [undo] * bool(undo and not done["status"])
        return done["out"] if not done["status"] else None

    def _parsed(self, text, source):
        """JSON; raises Dead if it is none."""
        try:
            return json.loads(text)
        except ValueError as why:
            raise Dead(f"{self.host.name}: {source} printed no JSON: {why}") from None

    def json(self, *argv, may_fail=False):
        """The JSON that a command prints; None if it failed and may."""
        text = self.run(*argv, may_fail=may_fail)
        return None if text is None else self._parsed(text, argv[0])

    def sysctl(self, values):
        """Set these sysctls if they exist, and restore all others."""
        self.before = self.call("sysctl", values=values)["before"]

    def start(self, argv, rows, text=None):
        """Start the load generator, which prints this number of rows: row() returns them.  A file
        of `text` is its last argument."""
        expected = [self._expect() for _ in range(rows)]
        self._rows = [future for _, future in expected]
        self.call("start", argv=[str(word) for word in argv], text=text,
                  numbers=[number for number, _ in expected])

    def row(self, seconds):
        """The load generator's next row, the last one when it ends; raises Dead if it failed.  With
        flows that are not complete it ends with 1, and a row."""
        done = self._result(self._rows.pop(0), seconds)
        if done["status"] < 0 or not done["out"].strip():
            why = done["err"].strip() or f"the load generator ended with {done['status']}"
            raise Dead(f"{self.host.name}: {why}")
        return self._parsed(done["out"], "the load generator")

    def close(self):
        """Restore the host and end the connection; returns the errors."""
        self._end.set()
        try:
            wrong = self._ask("end", _RESTORE)["wrong"]
        except Dead as why:
            return [str(why)]
        with contextlib.suppress(BrokenPipeError):          # a last ping
            self._ssh.stdin.close()
        self._ssh.wait()
        return [f"{self.host.name}: not restored: {one}" for one in wrong]


class Sessions:
    """Sessions of several hosts; a context manager, which restores all of them at its end."""

    def __init__(self, hosts, report):
        self._report = report           # a function, for errors at the end
        self._hosts, self._open = hosts, {}
        self._pool = concurrent.futures.ThreadPoolExecutor(2 * len(hosts))
        self.errors = []                # of the connections

    def __enter__(self):
        begun = {host.name: self._pool.submit(Session, host) for host in self._hosts}
        try:
            for name, future in begun.items():
                try:
                    self._open[name] = future.result()
                except Dead as why:
                    self.errors.append(str(why))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __getitem__(self, host):
        return self._open[host.name]

    def each(self, function, hosts=None):
        """[function(session)] of these hosts, or all open ones, at the same time.  The first error
        ends the wait."""
        sessions = [self[host] for host in hosts] if hosts else list(self._open.values())
        futures = [self._pool.submit(function, session) for session in sessions]
        concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
        for future in futures:
            if future.done():
                future.result()
        return [future.result() for future in futures]

    def __exit__(self, *_):
        wrong = [error for found in self._pool.map(Session.close, self._open.values())
                 for error in found]
        self._pool.shutdown()
        for error in wrong:
            self._report(error)
