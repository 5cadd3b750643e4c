# SPDX-License-Identifier: GPL-2.0
"""Connections and the messages on them: the common part of experiments with a schedule.

A schedule depends only on its seed and the network's size: every congestion control plays the same
one.
"""

import dataclasses
import random

from lab.net.network import PORTS

# loadgen/play listens on this port for the first congestion control; the next ones' ports follow.
FIRST_SERVER = 5001


@dataclasses.dataclass
class Message:
    """A message.  It begins at the time `at`, ns, or, an `answer`, when its request is complete."""
    at: int
    connection: int
    bytes: int
    answer: "Message" = None


@dataclasses.dataclass
class Connection:
    """One direction of a connection; `reversed` is the number of the other direction if that is
    earlier in the list.  `share`, a random number from 0 to 1, selects the congestion control of a
    mix."""
    src: int
    dst: int
    port: int
    kind: int
    share: float
    reversed: int = None

    def part(self, parts):
        """Its part, from 0, if the connections are divided into `parts` by `share`."""
        return int(self.share * parts)

    def line(self, parts):
        """Its entry in the schedule; each kind has `parts` classes."""
        number = self.kind * parts + self.part(parts)
        if self.reversed is None:
            return f"connection {self.src} {self.dst} {self.port} {number}"
        return f"reverse {self.reversed} {number}"


def crossing(config):
    """The share of bytes that cross the core, if all pairs of hosts send alike."""
    hosts = config["hosts"]
    return (hosts - hosts // (config.get("pods") or config["leaves"])) / (hosts - 1)


def core_rate(config):
    """The total rate of all links up to the core, bit/s: of the leaves, or of the pods."""
    if config.get("pods"):
        return config["pods"] * config["cores"] * config["rate"]
    return config["leaves"] * config["spines"] * config["rate"]


class Plan:
    """Connections and the messages on them; a subclass generates them."""

    classes = ()            # names of the kinds of connections; the subclass sets them

    def __init__(self, seed):
        self.connections, self.messages = [], []
        self.random = self.port_random = random.Random(seed)
        # A separate generator, so that a mix has the flows of a run with one congestion control.
        self.share_random = random.Random(f"{seed} shares")
        self._ports, self._reverses = {}, {}

    def times(self, n, end):
        """The sorted arrival times, before `end`, of `n` messages of a Poisson process."""
        return sorted(self.random.randrange(end) for _ in range(round(n)))

    def _port(self, src):
        """An unused local port of this host; the switches select the path by it."""
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
        """The answers, in the order of their requests."""
        return [message.answer for message in self.messages if message.answer]

    def kind(self, message):
        """The kind of the message's connection: an index into `classes`."""
        return self.connections[message.connection].kind

    def text(self, network, *tos, ccs=("",)):
        """The schedule as loadgen/play reads it.  `tos` are the TOS bytes of the kinds' packets.
        Each kind has a class for each congestion control: NAME, or in a mix NAME@CC."""
        lines = [f"class {name}{'@' * (len(ccs) > 1)}{cc * (len(ccs) > 1)} {value} {cc}".rstrip()
                 for name, value in zip(self.classes, tos) for cc in ccs]
        lines += [f"host {name} {network.address(name)}" for name in network.hosts]
        lines += [connection.line(len(ccs)) for connection in self.connections]
        lines += [f"message {m.at} {m.connection} {m.bytes}" for m in self.messages]
        lines += [f"answer {number} {m.answer.connection} {m.answer.bytes}"
                  for number, m in enumerate(self.messages) if m.answer]
        return "\n".join(lines) + "\n"
