#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A gRPC service that echoes, and its client: small calls on one persistent connection.

	rpc.py serve ADDRESS:PORT
	rpc.py call ADDRESS:PORT COUNT

The client makes COUNT calls of every size, first one after the other, then all at one time; it
prints the median duration of the former by size, us.  Messages are bytes, so that no code has to be
generated.
"""
import concurrent.futures
import json
import os
import statistics
import sys
import time

import grpc     # pylint: disable=import-error

METHOD = "/echo.Echo/Call"
SIZES = (10, 1000, 20_000)


def serve(where):
    """Serve until terminated."""
    echo = grpc.method_handlers_generic_handler(
        "echo.Echo", {"Call": grpc.unary_unary_rpc_method_handler(lambda request, _: request)})
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((echo,))
    if not server.add_insecure_port(where):
        sys.exit(f"rpc: no port {where}")
    server.start()
    server.wait_for_termination()


def call(where, count):
    """Make all calls, and print the median durations as JSON."""
    took = {}
    with grpc.insecure_channel(where) as channel:
        grpc.channel_ready_future(channel).result(timeout=30)
        method = channel.unary_unary(METHOD)
        for size in SIZES:
            times = []
            for _ in range(count):
                message = os.urandom(size)
                began = time.monotonic()
                if method(message, timeout=30) != message:
                    sys.exit(f"rpc: {size} bytes are not those that were sent")
                times.append(time.monotonic() - began)
            took[size] = round(1e6 * statistics.median(times))
        messages = [os.urandom(size) for size in SIZES for _ in range(count)]
        waiting = [method.future(message, timeout=30) for message in messages]
        if [one.result() for one in waiting] != messages:
            sys.exit("rpc: many at a time are not those that were sent")
    print(json.dumps(took))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        call(sys.argv[2], int(sys.argv[3]))
