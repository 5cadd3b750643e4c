# SPDX-License-Identifier: GPL-2.0
"""The guest's half: memcached on s0 ..., wrk on the last sender, NGINX on r."""

import json
import pathlib
import socket
import subprocess

from experiments.apps import programs as apps
from experiments.apps.programs import HTTP, REPEATED, NotReady, in_url, repeated
from experiments.traffic.incast import Incast

network = Incast

PORT = 11211
KEYS = 16               # of each memcached
REPORT = pathlib.Path(__file__).resolve().parent / "wrk_report.lua"

FRONT_END = """
    init_by_lua_block {
        %(repeated)s
        SERVERS, KEYS, BYTES, pages = %(servers)d, %(keys)d, %(bytes)d, 0
        expected = {}
        for server = 0, SERVERS - 1 do
            for key = 0, KEYS - 1 do
                local name = server .. "/" .. key
                expected[name] = repeated(name .. ".", BYTES)
            end
        end
    }
    %(upstreams)s
    server {
        LISTEN
        memcached_buffer_size 64k;
        %(parts)s
        location = /page { content_by_lua_block {
            local asked, names = {}, {}
            for i = 1, SERVERS do
                names[i] = (i - 1) .. "/" .. pages %% KEYS
                asked[i] = { "/part/" .. names[i] }
            end
            pages = pages + 1
            for i, part in ipairs { ngx.location.capture_multi(asked) } do
                if part.status ~= 200 or part.body ~= expected[names[i]] then
                    return ngx.exit(500)
                end
            end
            ngx.header.content_length = 2
            ngx.print("OK")
        } }
    }
"""


def fill(ns, address, number, size):
    """Store a memcached's values, from the memcached's host."""
    with ns:
        one = socket.create_connection((address, PORT))
    with one, one.makefile("rb") as file:
        for key in range(KEYS):
            name = f"{number}/{key}"
            one.sendall(f"set {name} 0 0 {size}\r\n{repeated(name + '.', size)}\r\n".encode())
            if file.readline() != b"STORED\r\n":
                raise NotReady(f"memcached on {ns.name} does not store")


def measure(programs, network, config, job):
    """Start the programs, fill the caches, run wrk."""
    *servers, asks = network.senders
    upstreams, parts = [], []
    for i, server in enumerate(servers):
        programs.serve(server, "memcached", "-u", "root", "-l", network.address(server),
                       "-p", PORT, "-U", 0, "-t", 1)
        upstreams.append(f"upstream cache{i} {{ server {in_url(network.address(server))}:"
                         f"{PORT}; keepalive {job['users']}; }}")
        parts.append(f"location ~ ^/part/({i}/[0-9]+)$ {{ internal;"
                     f" set $memcached_key $1; memcached_pass cache{i}; }}")
    front = in_url(network.address(network.receiver))
    programs.nginx(network.receiver, front, FRONT_END % {
        "servers": len(servers), "keys": KEYS, "bytes": config["bytes"],
        "upstreams": "\n".join(upstreams), "parts": "\n".join(parts), "repeated": REPEATED})
    programs.ready()
    for i, server in enumerate(servers):
        fill(network.ns[server], network.address(server), i, config["bytes"])
    wrk = programs.start(asks, "wrk", "-t", 1, "-c", job["users"], "-d",
                         f"{config['duration'] // 10**9}s", "-s", REPORT,
                         f"http://{front}:{HTTP}/page", "--", config["think"] // 10**6,
                         stdout=subprocess.PIPE)
    said = wrk.communicate()[0].decode().strip().splitlines()
    if wrk.returncode or not said:
        raise NotReady(f"wrk: exit status {wrk.returncode}")
    told = json.loads(said[-1])
    times = [1000 * round(time) for time, count in told["times_us"] for _ in range(count)]
    return {"fct_ns": [times], "unfinished": told["failed"], "bulk_flows": 0}


def run(network, config, job):
    """One congestion control, one number of users."""
    return apps.run(network, config, job, measure)
