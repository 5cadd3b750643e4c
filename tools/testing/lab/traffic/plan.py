# SPDX-License-Identifier: GPL-2.0
"""Incasts of short messages beside long flows: who sends what to whom, and when.

Load is what is offered to the core: payload that has to cross it, by what all leaves'
uplinks carry in a direction.  Senders and receivers are chosen at random, so of
N hosts, M of them at a leaf, (N - M) / (N - 1) of all bytes cross it.

Both arrive as a Poisson process.  Given its number, its arrivals are independent and
uniform, so the number is fixed to what the load asks for, and a run has that load, not
one near it.  All of it comes from the seed, the load and the network's size, and from
nothing that happens later: every congestion control plays the same schedule.
"""

import dataclasses
import random

from fabric import PORTS

SHORT, LONG = range(2)
# ns between two short messages of a connection.  Messages are independent, but on a
# connection the later one's bytes are in order only behind the earlier one's.
SPACING = 2_000_000
CLASSES = ("short", "long")


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


def offered(config, load):
    """What all hosts send, bit/s, at a load in percent."""
    return load / 100 * core_rate(config) / crossing(config)


def duration(config, load):
    """ns that are measured: --duration, or as long as so many short --messages take."""
    if not config.get("messages"):
        return config["duration"]
    sizes = config["bytes"]
    short = offered(config, load) * config["short"] / 100       # bit/s
    return round(config["messages"] * sum(sizes) / len(sizes) * 8e9 / short)


class Plan:
    """Connections and the messages on them; how they come about is the subclass's."""

    classes = CLASSES       # names of the kinds of connections

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
        lines += [f"host {name} {network.host_link(number)[1]}"
                  for number, name in enumerate(network.hosts)]
        lines += [connection.line(len(ccs)) for connection in self.connections]
        lines += [f"message {m.at} {m.connection} {m.bytes}" for m in self.messages]
        lines += [f"answer {number} {m.answer.connection} {m.answer.bytes}"
                  for number, m in enumerate(self.messages) if m.answer]
        return "\n".join(lines) + "\n"


class Schedule(Plan):
    """Incasts of short messages, and long flows."""

    def __init__(self, config, load):
        super().__init__(f"{config['seed']} {load}")
        self.config = config
        self._short = {}
        self.duration = duration(config, load)
        self.end = config["warm_up"] + self.duration
        total = offered(config, load) / 8e9 * self.end      # bytes
        self._incasts(total * config["short"] / 100)
        self._long_flows(total * (100 - config["short"]) / 100)
        self.messages.sort(key=lambda m: m.at)

    def _incasts(self, total):
        sizes, degree = self.config["bytes"], self.config["degree"]
        hosts = range(self.config["hosts"])
        last = {}
        for at in self.times(total / (degree * sum(sizes) / len(sizes)), self.end):
            dst = self.random.choice(hosts)
            others = [src for src in hosts if src != dst]
            self.random.shuffle(others)
            # Those who have had a rest; in a small network that may not be enough of them.
            others.sort(key=lambda src: at - last.get((src, dst), -SPACING) < SPACING)
            for src in others[:degree]:
                last[src, dst] = at
                # Connections of short messages last, one for each pair.
                if (src, dst) not in self._short:
                    self._short[src, dst] = self.connect(src, dst, SHORT)
                self.messages.append(Message(at, self._short[src, dst],
                                             self.random.choice(sizes)))

    def _long_flows(self, total):
        size, rate = self.config["long_bytes"], self.config["rate"]
        if size * 8e9 / rate > self.end:
            self._endless_flows(round(total * 8e9 / self.end / rate))
            return
        for at in self.times(total / size, self.end):
            src, dst = self.random.sample(range(self.config["hosts"]), 2)
            self.messages.append(Message(at, self.connect(src, dst, LONG), size))

    def _endless_flows(self, number):
        """So many as would have the load if each had a line for itself."""
        hosts = range(self.config["hosts"])
        for src in self.random.sample(hosts, number):
            dst = self.random.choice([host for host in hosts if host != src])
            self.messages.append(Message(0, self.connect(src, dst, LONG), 0))

    def counts(self, message):
        """Is it one of those that are measured?"""
        return message.at >= self.config["warm_up"] and message.bytes
