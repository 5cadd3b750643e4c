# SPDX-License-Identifier: GPL-2.0
"""The guest's half: NGINX on s0 ..., a client on the last sender, Redis on r.

A request succeeds if its answer is OK and Redis has its value.
"""

import random
import socket
import time

from experiments.apps import programs as apps
from experiments.apps.http_client import Client
from experiments.apps.programs import HTTP, REPEATED, NotReady, in_url, repeated
from experiments.traffic.incast import Incast

network = Incast

PORT = 6379
LIMIT = 60              # maximum time of a repetition, in virtual seconds
BACKGROUND = "background"

# Each of the simultaneous requests has its own connection to Redis, from a pool that /warm fills.
# The answer begins with "cold" if the connection is new.
WEB_SERVER = """
    init_by_lua_block { %(repeated)s }
    lua_socket_connect_timeout 60s; lua_socket_send_timeout 60s; lua_socket_read_timeout 60s;
    server {
        LISTEN
        location = /warm { content_by_lua_block {
            local red = require("nginx.redis"):new()
            assert(red:connect("%(redis)s", %(port)d))
            ngx.sleep(1)
            assert(red:set_keepalive(0, %(pool)d))
            ngx.header.content_length = 2
            ngx.print("OK")
        } }
        location = /set { content_by_lua_block {
            local arg = ngx.req.get_uri_args()
            local red = require("nginx.redis"):new()
            assert(red:connect("%(redis)s", %(port)d))
            local reply = red:get_reused_times() > 0 and "" or "cold "
            reply = reply .. assert(red:set(arg.key, repeated(arg.unit, tonumber(arg.bytes))))
            assert(red:set_keepalive(0, %(pool)d))
            ngx.header.content_length = #reply
            ngx.print(reply)
        } }
    }
"""


class Stored:
    """The values in Redis, read on Redis's host, so not through the switch."""

    def __init__(self, ns, address):
        with ns:
            self.socket = socket.create_connection((address, PORT))
        self.file = self.socket.makefile("rb")

    def get(self, key):
        """The value of a key, or None."""
        self.socket.sendall(f"GET {key}\r\n".encode())
        length = int(self.file.readline()[1:])
        return self.file.read(length + 2)[:-2] if length >= 0 else None

    def close(self):
        """Close the connection."""
        self.file.close()
        self.socket.close()


def _request(key, number, size):
    """(key, unit of the value, path); each repetition stores different values."""
    unit = f"{key}.{number}."
    return key, unit, f"/set?key={key}&unit={unit}&bytes={size}"


def one_round(client, stored, config, job, number):
    """Send all requests at once: (response times, the background's), 0 for a failed request."""
    sets = [_request(f"k{i}", number, config["bytes"]) for i in range(job["flows"])]
    sizes = [config["bytes"]] * len(sets)
    if config["background"]:
        sets.append(_request(BACKGROUND, number, config["background"]))
        sizes.append(config["background"])
        client.ask(job["flows"], [sets[-1][2]])
        time.sleep(config["lead"] / 1e9)
    client.ask(0, [path for _, _, path in sets[:job["flows"]]])
    answers = client.answers(LIMIT)
    times = []
    for i, ((key, unit, _), size) in enumerate(zip(sets, sizes)):
        took, body = answers.get(i, (0, b""))
        right = body == b"OK" and stored.get(key) == repeated(unit, size).encode()
        times.append(took if right else 0)
    return times[:job["flows"]], times[job["flows"]:]


def measure(programs, network, config, job):
    """Start the programs, fill the connection pools, repeat the requests."""
    *servers, asks = network.senders
    redis = network.address(network.receiver)
    connections = job["flows"] + bool(config["background"])
    pool = -(-connections // len(servers))
    programs.serve(network.receiver, "redis-server", "--bind", redis, "--port", PORT, "--save", "",
                   "--protected-mode", "no", "--tcp-backlog", 65535)
    text = WEB_SERVER % {"redis": in_url(redis), "port": PORT, "pool": pool,
                         "repeated": REPEATED}
    for server in servers:
        programs.nginx(server, in_url(network.address(server)), text)
    programs.ready()
    client = Client(network.ns[asks], [network.address(s) for s in servers], HTTP, connections)
    stored = Stored(network.ns[network.receiver], redis)
    try:
        client.ask(0, ["/warm"] * connections)
        warm = client.answers(LIMIT)
        if [body for _, body in warm.values()] != [b"OK"] * connections:
            raise NotReady("the web servers do not reach Redis")
        times, background, gaps = [], [], random.Random(config["seed"])
        for number in range(config["rounds"]):
            time.sleep(config["gap"] * gaps.uniform(1, 1.1) / 1e9)
            foreground, others = one_round(client, stored, config, job, number)
            times.append(foreground)
            background += others
    finally:
        client.close()
        stored.close()
    return {"fct_ns": times, "background_ns": background, "bulk_flows": 0,
            "unfinished": sum(not t for r in [*times, background] for t in r)}


def run(network, config, job):
    """One congestion control, one number of requests."""
    return apps.run(network, config, job, measure)
