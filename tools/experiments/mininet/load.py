#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The examples' load: one host sends requests to many, each of which answers with a message.

	load.py serve PORT BYTES
	load.py ask [--flows N] [--rounds N] [--gap S] PORT BYTES ADDRESS...

serve: answer each received byte with BYTES bytes.
ask: open --flows connections to each address.  --rounds times, wait --gap seconds, send a request
on all of these connections at once, and wait for all answers.  Print the duration of each answer in
seconds, as JSON: a list for each repetition.
"""

import argparse
import json
import math
import selectors
import socket
import socketserver
import sys
import time

PORT = 5001


def serving(host, count, port=PORT):
    """A server on a mininet host, which the caller terminates."""
    server = host.popen([sys.executable, "-S", __file__, "serve", str(port), str(count)])
    server.stdout.readline()
    return server


def asking(host, servers, count, port=PORT, **options):
    """A client of these servers on a mininet host; answers() waits for its end."""
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    return host.popen([sys.executable, "-S", __file__, "ask", *words, str(port), str(count),
                       *(server.IP() for server in servers)])


def answers(process):
    """The durations of the answers, s: a list for each repetition."""
    out, err = process.communicate()
    if process.returncode:
        raise SystemExit(f"load: {err.decode().strip().splitlines()[-1]}")
    return json.loads(out)


def play(host, servers, count, **options):
    """Run the load from `servers` to `host`; returns the sorted durations of the answers, s."""
    running = [serving(server, count) for server in servers]
    try:
        return sorted(sum(answers(asking(host, servers, count, **options)), []))
    finally:
        end(running)


def end(running):
    """Terminate these servers."""
    for server in running:
        server.terminate()
        server.communicate()


def percentile(times, percent):
    """The percentile of sorted times by nearest rank, in ms."""
    return 1000 * times[max(0, math.ceil(len(times) * percent / 100) - 1)]


def times_of(times):
    """Values of a row: the number of answers, and percentiles of their durations."""
    return {"answers": len(times), **{f"p{p} ms": percentile(times, p) for p in (50, 99, 100)}}


def drops(port):
    """Values of a row: the packets that a port has dropped, by colour."""
    return {f"drop {name}": sum(colour["drops"].values())
            for name, colour in port["colors"].items()}


def show(rows, as_json):
    """Print rows as a table, or as JSON."""
    if as_json:
        print(json.dumps(rows))
        return
    widths = [max(len(key), *(len(_text(row[key])) for row in rows)) for key in rows[0]]
    for line in [list(rows[0]), *([_text(value) for value in row.values()] for row in rows)]:
        print("  ".join(word.rjust(width) for word, width in zip(line, widths)))


def _text(value):
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def serve(port, count):
    """Answer each received byte with `count` bytes; does not return."""
    answer = b"x" * count

    class Handler(socketserver.BaseRequestHandler):
        """Serves one connection."""

        def handle(self):
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self.request.recv(1):
                self.request.sendall(answer)

    class Server(socketserver.ThreadingTCPServer):
        """Its backlog is large, because an incast opens all connections at once."""

        allow_reuse_address = daemon_threads = True
        request_queue_size = 4096

    with Server(("", port), Handler) as server:
        print("ready", flush=True)
        server.serve_forever()


def one_round(connections, count):
    """Send a request on all connections; returns the duration of each answer, s."""
    missing = {connection: count for connection in connections}
    took = []
    begin = time.monotonic()
    for connection in connections:
        connection.send(b"?")
    with selectors.DefaultSelector() as ready:
        for connection in connections:
            ready.register(connection, selectors.EVENT_READ)
        while missing:
            for key, _ in ready.select():
                got = len(key.fileobj.recv(1 << 20))
                missing[key.fileobj] -= got
                if not got or missing[key.fileobj] < 0:
                    raise SystemExit("load: an answer has another length")
                if not missing[key.fileobj]:
                    took.append(time.monotonic() - begin)
                    del missing[key.fileobj]
                    ready.unregister(key.fileobj)
    return took


def main():
    """The command line."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True, dest="command")
    add = commands.add_parser("serve").add_argument
    add("port", type=int)
    add("bytes", type=int)
    add = commands.add_parser("ask").add_argument
    add("--flows", type=int, default=1)
    add("--rounds", type=int, default=1)
    add("--gap", type=float, default=1)
    add("port", type=int)
    add("bytes", type=int)
    add("address", nargs="+")
    args = parser.parse_args()
    if args.command == "serve":
        serve(args.port, args.bytes)
    connections = [socket.create_connection((address, args.port))
                   for _ in range(args.flows) for address in args.address]
    rounds = []
    for _ in range(args.rounds):
        time.sleep(args.gap)
        rounds.append(one_round(connections, args.bytes))
    print(json.dumps(rounds))


if __name__ == "__main__":
    main()
