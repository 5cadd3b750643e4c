# SPDX-License-Identifier: GPL-2.0
"""Connections and the messages on them: what every experiment with a schedule has.

A schedule is made from its seed and the network's size, and from nothing that happens
later: every congestion control plays the same one.
"""

import dataclasses
import random

from lab.net.network import PORTS

# loadgen/play listens there, for the first congestion control; for the next ones behind it.
FIRST_SERVER = 5001


@dataclasses.dataclass
class Message:
    """Begins at a time; or, as the answer of another, when that one is done."""
    at: int
    connection: int
    bytes: int
    answer: "Message" = None


@dataclasses.dataclass
class Connection:
    """A direction of one; `reversed` is the number of the other direction, which came first.
    Of all connections, `share` is from 0 to 1: so a mix is divided among them."""
    src: int
    dst: int
    port: int
    kind: int
    share: float
    reversed: int = None

    def part(self, parts):
        """In which of so many it is."""
        return int(self.share * parts)

    def line(self, parts):
        """Of the schedule; each kind has so many classes."""
        number = self.kind * parts + self.part(parts)
        if self.reversed is None:
            return f"connection {self.src} {self.dst} {self.port} {number}"
        return f"reverse {self.reversed} {number}"


def crossing(config):
    """Share of the bytes that cross the core."""
    hosts = config["hosts"]
    return (hosts - hosts // config["leaves"]) / (hosts - 1)


def core_rate(config):
    """What all leaves' uplinks carry, bit/s."""
    return config["leaves"] * config["spines"] * config["rate"]


class Plan:
    """Connections and the messages on them; how they come about is the subclass's."""

    classes = ()            # names of the kinds of connections: the subclass's

    def __init__(self, seed):
        self.connections, self.messages = [], []
        self.random = self.port_random = random.Random(seed)
        # Of its own, so that a mix has the flows of those who run alone.
        self.share_random = random.Random(f"{seed} shares")
        self._ports, self._reverses = {}, {}

    def times(self, n, end):
        """When so many messages of a Poisson process come."""
        return sorted(self.random.randrange(end) for _ in range(round(n)))

    def _port(self, src):
        """One that this host does not have yet; by it the switches choose the way."""
        taken = self._ports.setdefault(src, set())
        while (port := self.port_random.choice(PORTS)) in taken:
            pass
        taken.add(port)
        return port

    def connect(self, src, dst, kind):
        """A new connection; returns its number."""
        self.connections.append(Connection(src, dst, self._port(src), kind,
                                           self.share_random.random()))
        return len(self.connections) - 1

    def reverse(self, number):
        """The other direction of a connection; returns its number."""
        if number not in self._reverses:
            there = self.connections[number]
            self.connections.append(Connection(there.dst, there.src, None, there.kind,
                                               there.share, number))
            self._reverses[number] = len(self.connections) - 1
        return self._reverses[number]

    @property
    def answers(self):
        """In the order of their requests."""
        return [message.answer for message in self.messages if message.answer]

    def kind(self, message):
        """Its class, by number."""
        return self.connections[message.connection].kind

    def text(self, network, *tos, ccs=("",)):
        """The schedule as loadgen/play reads it; `tos` of the packets of each kind, which are
        a class for each congestion control: NAME, or of a mix NAME@CC."""
        lines = [f"class {name}{'@' * (len(ccs) > 1)}{cc * (len(ccs) > 1)} {value} {cc}".rstrip()
                 for name, value in zip(self.classes, tos) for cc in ccs]
        lines += [f"host {name} {network.address(name)}" for name in network.hosts]
        lines += [connection.line(len(ccs)) for connection in self.connections]
        lines += [f"message {m.at} {m.connection} {m.bytes}" for m in self.messages]
        lines += [f"answer {number} {m.answer.connection} {m.answer.bytes}"
                  for number, m in enumerate(self.messages) if m.answer]
        return "\n".join(lines) + "\n"
