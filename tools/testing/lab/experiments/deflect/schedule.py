# SPDX-License-Identifier: GPL-2.0
"""Incasts of short messages beside long flows: who sends what to whom, and when.

Load is what is offered to the core: payload that has to cross it, as a part of what all
leaves' uplinks carry in a direction.  Senders and receivers are chosen at random, so of N
hosts, M of them at a leaf, (N - M) / (N - 1) of all bytes cross it.

Both arrive as a Poisson process.  Given its number, its arrivals are independent and
uniform, so the number is fixed to what the load asks for, and a run has that load, not
one near it.
"""

from lab.traffic.plan import Message, Plan, core_rate, crossing

SHORT, LONG = range(2)
# ns between two short messages of a connection.  Messages are independent, but on a
# connection the later one's bytes are in order only behind the earlier one's.
SPACING = 2_000_000
CLASSES = ("short", "long")


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


class Schedule(Plan):
    """Incasts of short messages, and long flows."""

    classes = CLASSES

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
        if self.config.get("long_flows"):
            self._endless_flows(self.config["long_flows"])
            return
        if size * 8e9 / rate > self.end:
            self._endless_flows(round(total * 8e9 / self.end / rate))
            return
        for at in self.times(total / size, self.end):
            src, dst = self.random.sample(range(self.config["hosts"]), 2)
            self.messages.append(Message(at, self.connect(src, dst, LONG), size))

    def _endless_flows(self, number):
        """--long-flows, or the number that has the load if each has a link for itself.  All hosts
        have one before a host has a second one."""
        hosts = range(self.config["hosts"])
        sources = []
        while len(sources) < number:
            sources += self.random.sample(hosts, min(number - len(sources), len(hosts)))
        for src in sources:
            dst = self.random.choice([host for host in hosts if host != src])
            self.messages.append(Message(0, self.connect(src, dst, LONG), 0))

    def counts(self, message):
        """Is it one of those that are measured?"""
        return message.at >= self.config["warm_up"] and message.bytes
