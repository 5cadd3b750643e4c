# SPDX-License-Identifier: GPL-2.0
"""In the guest: the distribution's programs, unpacked and unmodified, on the hosts.

They select no congestion control: it is their namespace's sysctl.  Computing takes no
virtual time, and each reading of the clock takes 0.256 us: times are those of the network.
"""

import pathlib
import resource
import subprocess
import tempfile
import time

from experiments.apps import unpacked
from experiments.traffic import incast
from lab import units
from lab.net.namespace import read_sysctl, write_sysctl

HTTP = 80
FILES = 1 << 18         # a host of an incast has thousands of connections


class NotReady(Exception):
    """A program that cannot run; the message is for the user."""


def set_cc(network, name):
    """Set the congestion control of all new sockets on the network's hosts."""
    # dctcp is restricted: other namespaces than the first may use it only if it is allowed.
    allowed = "net.ipv4.tcp_allowed_congestion_control"
    try:
        write_sysctl(allowed, f"{read_sysctl(allowed)} {name}")
        for host in network.hosts:
            network.ns[host].sysctl("net.ipv4.tcp_congestion_control", name)
    except OSError as why:
        raise NotReady(f"no congestion control {name}") from why


class Programs:
    """The programs of one run, which are terminated at its end."""

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
        """Start a program on a host; returns its Popen object."""
        found = next(self.apps.glob(f"usr/*bin/{program}"))
        with self.network.ns[host]:
            process = subprocess.Popen(
                [str(word) for word in (found, *words)], cwd=self.where.name,
                env=unpacked.environment(self.apps), **options)
        return process

    def serve(self, host, program, *words):
        """Start a server, which runs until the end of the run."""
        process = self.start(host, program, *words, stdout=subprocess.DEVNULL)
        process.program = f"{program} on {host}"
        self.running.append(process)

    def nginx(self, host, address, http):
        """Start a web server of one process, with Lua; `http` is its configuration's http part."""
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
        """Wait a second until all servers are ready, which takes only virtual time."""
        time.sleep(1)
        for process in self.running:
            if process.poll() is not None:
                raise NotReady(f"{process.program}: exit status {process.returncode}")


def run(network, config, job, measure):
    """Execute a run, whose load is measure(programs, network, config, job)."""
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
    """`size` bytes that repeat `unit`, so that each part of a value identifies its owner."""
    return (unit * (size // len(unit) + 1))[:size]


# repeated() in Lua.
REPEATED = """
    function repeated(unit, size)
        return (unit:rep(math.floor(size / #unit) + 1)):sub(1, size)
    end
"""
