# SPDX-License-Identifier: GPL-2.0
"""In the guest: the distribution's programs, unpacked and unmodified, on the hosts.

They know of no congestion control: it is their namespace's sysctl.  Computing costs no
virtual time, but each look at the clock 0.256 us: what is measured is the network.
"""

import pathlib
import resource
import subprocess
import tempfile
import time

from lab import units
from lab.apps import unpacked
from lab.net.namespace import read_sysctl, write_sysctl
from lab.traffic import incast

HTTP = 80
FILES = 1 << 18         # a host of an incast has thousands of connections


class NotReady(Exception):
    """A program that cannot run, in words for the user."""


def set_cc(network, name):
    """The congestion control of all sockets to come on the network's hosts."""
    # dctcp is restricted: not for other namespaces than the first one.
    allowed = "net.ipv4.tcp_allowed_congestion_control"
    try:
        write_sysctl(allowed, f"{read_sysctl(allowed)} {name}")
        for host in network.hosts:
            network.ns[host].sysctl("net.ipv4.tcp_congestion_control", name)
    except OSError as why:
        raise NotReady(f"no congestion control {name}") from why


class Programs:
    """Those of one run; all of them end with it."""

    def __init__(self, network, apps):
        self.network = network
        self.apps = pathlib.Path(apps)
        self.running = []
        self.where = None

    def __enter__(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        self.where = tempfile.TemporaryDirectory()
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait()
        self.where.cleanup()

    def start(self, host, program, *words, **options):
        """Start one on a host."""
        found = next(self.apps.glob(f"usr/*bin/{program}"))
        with self.network.ns[host]:
            process = subprocess.Popen(
                [str(word) for word in (found, *words)], cwd=self.where.name,
                env=unpacked.environment(self.apps), **options)
        return process

    def serve(self, host, program, *words):
        """Start one that stays."""
        process = self.start(host, program, *words, stdout=subprocess.DEVNULL)
        process.program = f"{program} on {host}"
        self.running.append(process)

    def nginx(self, host, address, http):
        """A web server of one process, with Lua; `http` is what it is there for."""
        modules = self.apps / "usr/lib/nginx/modules"
        own = pathlib.Path(self.where.name, host)
        temporary = " ".join(f"{kind}_temp_path {own}/{kind};" for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        own.mkdir()
        config = own / "nginx.conf"
        config.write_text(f"""
            load_module {modules}/ndk_http_module.so;
            load_module {modules}/ngx_http_lua_module.so;
            daemon off; user root; pid {own}/pid; error_log stderr error;
            worker_processes 1; worker_rlimit_nofile {FILES};
            events {{ worker_connections 65536; }}
            http {{
                access_log off; {temporary}
                keepalive_timeout 1h; keepalive_requests 1000000000;
                lua_package_path "{self.apps}/usr/share/lua/5.1/?.lua;;";
                {http.replace("LISTEN", f"listen {address}:{HTTP} backlog=65535;")}
            }}""", encoding="ascii")
        self.serve(host, "nginx", "-c", config, "-e", "stderr")

    def ready(self):
        """Wait until all serve: a second costs nothing."""
        time.sleep(1)
        for process in self.running:
            if process.poll() is not None:
                raise NotReady(f"{process.program}: exit status {process.returncode}")


def run(network, config, job, measure):
    """A run of the programs: measure(programs, network, config, job) is what is done."""
    def load(network, config, job):
        try:
            set_cc(network, units.cc_name(job["cc"]))
            with Programs(network, config["apps"]) as programs:
                return measure(programs, network, config, job)
        except NotReady as why:
            return {"error": str(why)}
    return incast.run(network, config, job, load=load)


def in_url(address):
    """An address as a part of a URL."""
    return f"[{address}]" if ":" in address else address


def repeated(unit, size):
    """A value that tells whose it is, all over."""
    return (unit * (size // len(unit) + 1))[:size]


# The same in Lua.
REPEATED = """
    function repeated(unit, size)
        return (unit:rep(math.floor(size / #unit) + 1)):sub(1, size)
    end
"""
