# SPDX-License-Identifier: GPL-2.0
"""The schedule of background flows between random hosts, and of incasts.

Background: flows arrive as a Poisson process, each between two random hosts, on its own open and
idle connection, with a size from one of the distributions.

Foreground: incasts arrive as a Poisson process.  In each incast, --senders random hosts send
--flows messages of --bytes each to another random host.  Connections of the foreground persist:
the next incast from the same sender to the same receiver uses them again.

With --request, the receiver first sends a request on the same connection.  The flow is the answer,
and begins when the whole request has arrived.

Load is payload, in percent of the capacity of the core's links; without a core, of the hosts'
links.  The seed and the network's size determine the schedule: it is the same for every congestion
control, and at every load the background has the same flows in the same order, at other times.  In
a mix each connection has one of the congestion controls, with equal probability.
"""

import random

from experiments.traffic import sizes
from experiments.traffic.plan import Message, Plan, core_rate, crossing

BACKGROUND, FOREGROUND = range(2)


def capacity(config):
    """The total rate of the hosts, bit/s, that fills the core."""
    hosts, rate = config["hosts"], config["rate"]
    if config["topology"] == "leaf-spine":
        return core_rate(config) / crossing(config)
    if config["topology"] == "dumbbell":
        # The share of random pairs with one host on each side.
        across = 2 * (hosts // 2) * (hosts - hosts // 2) / (hosts * (hosts - 1))
        return 2 * rate / across
    return hosts * rate


class Schedule(Plan):
    """The connections and the messages on them."""

    classes = ("background", "foreground")

    def __init__(self, config):
        super().__init__(config["seed"])
        self.config = config
        # A separate generator: with --request the ports are other hosts', but the flows the same.
        self.port_random = random.Random(f"{config['seed']} ports")
        self._open = {}
        share = config["foreground"] / 100
        flows = [sizes.draw(config["workload"], self.random) for _ in range(config["background"])]
        offered = config["load"] / 100 * capacity(config) / 8e9     # bytes a ns
        # The background's bytes at their share of the load determine the duration; without
        # background, the bytes of --incasts do.
        if flows:
            self.end = round(sum(flows) / (offered * (1 - share)))
            incasts = sum(flows) * share / (1 - share) / self._incast_bytes()
        else:
            incasts = config["incasts"]
            self.end = round(incasts * self._incast_bytes() / offered)
        for at, size in zip(self.times(len(flows), self.end), flows):
            src, dst = self.random.sample(range(config["hosts"]), 2)
            self._flow(at, self._connect(src, dst, BACKGROUND), size)
        for at in self._incast_times(max(incasts, config["incasts"])):
            self._incast(at)
        self.messages.sort(key=lambda m: m.at)

    def times(self, n, end):
        """The arrival times, which are proportional to `end`, so the same order at every load."""
        return sorted(int(self.random.random() * end) for _ in range(round(n)))

    def _incast_times(self, n):
        # An incast draws its receiver after these times, so with --periodic it has the same one.
        times = self.times(n, self.end)
        if not self.config["periodic"]:
            return times
        return [self.end * (number + 1) // (len(times) + 1) for number in range(len(times))]

    def deployed(self, percent):
        """The numbers of `percent` of the hosts; a larger percentage includes the same hosts."""
        order = list(range(self.config["hosts"]))
        random.Random(f"{self.config['seed']} deployed").shuffle(order)
        return frozenset(order[:round(percent / 100 * len(order))])

    @property
    def flows(self):
        """The measured messages: all, or with --request the answers."""
        return self.answers if self.config["request"] else self.messages

    def text(self, network, *tos, ccs=("",)):
        """The schedule as loadgen/play reads it, with the switches whose queues it samples."""
        text = super().text(network, *tos, ccs=ccs)
        return text + "".join(f"switch {name}\n" for name in network.switches
                              if self.config["look"])

    def _connect(self, src, dst, kind):
        """A new connection; the client is the sender or, with --request, the receiver."""
        return self.connect(*((dst, src) if self.config["request"] else (src, dst)), kind)

    def _flow(self, at, connection, size):
        if self.config["request"]:
            answer = Message(None, self.reverse(connection), size)
            self.messages.append(Message(at, connection, self.config["request"], answer))
        else:
            self.messages.append(Message(at, connection, size))

    def _incast_bytes(self):
        return self.config["senders"] * self.config["each"] * self.config["bytes"]

    def _incast(self, at):
        dst, *sources = self.random.sample(range(self.config["hosts"]),
                                           self.config["senders"] + 1)
        for flow in range(self.config["each"]):
            for src in sources:
                key = src, dst, flow
                if key not in self._open:
                    self._open[key] = self._connect(src, dst, FOREGROUND)
                self._flow(at, self._open[key], self.config["bytes"])
