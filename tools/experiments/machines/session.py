# SPDX-License-Identifier: GPL-2.0
"""ssh connections to the hosts of a lab, one each, with far.py at the other end.

The user's ~/.ssh/config applies.  BatchMode: ssh asks for no password.  far.py is an argument of
the remote python3, so the remote shell sees only base64.  All requests of a session use one
connection.
"""

import base64
import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import tempfile
import threading
import zlib

from lab.net.namespace import Counting

# Seconds between requests that only show that this end lives; PATIENCE of far.py is six of them.
PING = 5
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
    """The session of a host of lab.toml (inventory.Host)."""

    def __init__(self, host):
        self.host, self.before, self.undo, self._dead = host, {}, [], False
        self._turn, self._writing = threading.Lock(), threading.Lock()
        self._stderr = tempfile.TemporaryFile("w+")
        command = [*_SSH, *["-p", str(host.port)] * bool(host.port),
                   *["-l", host.user] * bool(host.user), *host.options, "--", host.ssh,
                   "sudo -n " * host.sudo + _python()]
        try:
            # ^C must not end ssh before the host has been restored.
            self._ssh = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._stderr, text=True, start_new_session=True)
        except FileNotFoundError:
            raise Dead("no ssh: install openssh-client") from None
        self.facts = self._answer(60)
        self._end = threading.Event()
        threading.Thread(target=self._ping, daemon=True).start()

    def _ping(self):
        while not self._end.wait(PING):
            self._write({"do": "ping"})

    def _write(self, request):
        try:
            with self._writing:
                print(json.dumps(request), file=self._ssh.stdin, flush=True)
        except (BrokenPipeError, ValueError):
            pass            # _answer() reports it

    def _answer(self, seconds):
        """The next answer.  The remote user's shell may print something before the first one."""
        late = threading.Timer(seconds, self._ssh.kill)
        late.start()
        try:
            for row in self._ssh.stdout:
                if row.startswith("{"):
                    return json.loads(row)
        finally:
            late.cancel()
        self._ssh.wait()
        self._dead = True
        raise Dead(f"{self.host.name}: {self._why()}{self._state()}")

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

    def call(self, name, seconds=60, **fields):
        """A request and its answer; raises Dead."""
        with self._turn:
            self._write(dict(fields, do=name))
            answer = self._answer(seconds)
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

    def sysctl(self, values):
        """Set these sysctls if they exist, and restore all others."""
        self.before = self.call("sysctl", values=values)["before"]

    def start(self, argv, listens):
        """Start the load generator; returns whether it does, and if it listens, listens."""
        return bool(self.call("start", argv=argv, listens=listens)["first"]) or not listens

    def wait(self, seconds):
        """The load generator's stdout; raises Dead if it failed."""
        with self._turn:
            done = self._answer(seconds)
        if not done["out"].strip():
            why = done["err"].strip() or f"the load generator ended with {done['status']}"
            raise Dead(f"{self.host.name}: {why}")
        return done["out"]

    def close(self):
        """Restore the host and end the connection; returns the errors."""
        self._end.set()
        if self._dead:
            return []       # the error has been reported
        self._write({"do": "end"})
        try:
            with self._turn:
                while "wrong" not in (answer := self._answer(_RESTORE)):
                    pass
        except Dead as why:
            return [str(why)]
        self._ssh.stdin.close()
        self._ssh.wait()
        return [f"{self.host.name}: not restored: {one}" for one in answer["wrong"]]


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
