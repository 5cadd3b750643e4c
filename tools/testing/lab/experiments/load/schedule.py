# SPDX-License-Identifier: GPL-2.0
"""Flows between random hosts, and incasts beside them: who sends what to whom, and when.

Background: flows come as a Poisson process, each between two random hosts, on a connection
of its own that is open and has been idle, of a size from one of the distributions.

Foreground: incasts come as a Poisson process.  In each, --senders random hosts send
--flows messages of --bytes each to another random one.  Connections of the foreground
last; the next incast from the same sender to the same receiver uses them again.

With --request, the receiver asks first, on the same connection: a flow is the answer to so
many bytes, and it begins when they are there.

Load is payload: of the links of the core, in percent of what they carry, and where there
is no core, of the hosts' lines.  All of it comes from the seed and the network's size: every
congestion control plays the same schedule, and at every load the background has the same
flows in the same order, closer together or farther apart.  In a mix each connection has one
of its congestion controls, each with the same chance.
"""

import random

from lab.traffic import sizes
from lab.traffic.plan import Message, Plan, core_rate, crossing

BACKGROUND, FOREGROUND = range(2)


def capacity(config):
    """What the hosts may send in all, bit/s, before the core is full."""
    hosts, rate = config["hosts"], config["rate"]
    if config["topology"] == "leaf-spine":
        return core_rate(config) / crossing(config)
    if config["topology"] == "dumbbell":
        # Of random pairs so many have their ends on either side.
        across = 2 * (hosts // 2) * (hosts - hosts // 2) / (hosts * (hosts - 1))
        return 2 * rate / across
    return hosts * rate


class Schedule(Plan):
    """The connections and the messages on them."""

    classes = ("background", "foreground")

    def __init__(self, config):
        super().__init__(config["seed"])
        self.config = config
        # Of its own, so that who asks changes nobody's flows.
        self.port_random = random.Random(f"{config['seed']} ports")
        self._open = {}
        share = config["foreground"] / 100
        flows = [sizes.draw(config["workload"], self.random) for _ in range(config["background"])]
        offered = config["load"] / 100 * capacity(config) / 8e9     # bytes a ns
        # As long as all flows of the background take at their share of the load.  With
        # none of them, --incasts says.
        if flows:
            self.end = round(sum(flows) / (offered * (1 - share)))
            incasts = sum(flows) * share / (1 - share) / self._incast_bytes()
        else:
            incasts = config["incasts"]
            self.end = round(incasts * self._incast_bytes() / offered)
        for at, size in zip(self.times(len(flows), self.end), flows):
            src, dst = self.random.sample(range(config["hosts"]), 2)
            self._flow(at, self._connect(src, dst, BACKGROUND), size)
        for at in self.times(max(incasts, config["incasts"]), self.end):
            self._incast(at)
        self.messages.sort(key=lambda m: m.at)

    def times(self, n, end):
        """In proportion, for another load too."""
        return sorted(int(self.random.random() * end) for _ in range(round(n)))

    def deployed(self, percent):
        """The numbers of that many percent of the hosts; those of less are among them."""
        order = list(range(self.config["hosts"]))
        random.Random(f"{self.config['seed']} deployed").shuffle(order)
        return frozenset(order[:round(percent / 100 * len(order))])

    @property
    def flows(self):
        """What is measured: the messages, or the answers to them."""
        return self.answers if self.config["request"] else self.messages

    def text(self, network, *tos, ccs=("",)):
        """With the switches whose queues are looked at."""
        text = super().text(network, *tos, ccs=ccs)
        return text + "".join(f"switch {name}\n" for name in network.switches
                              if self.config["look"])

    def _connect(self, src, dst, kind):
        """Who asks is the client."""
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
