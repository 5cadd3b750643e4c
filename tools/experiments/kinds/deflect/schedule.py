# SPDX-License-Identifier: GPL-2.0
"""The schedule of incasts of short messages, and of long flows.

Load is the offered load of the core: the payload that crosses it, as a share of the capacity of all
leaves' uplinks in one direction.  Senders and receivers are random, so with N hosts, M at each
leaf, (N - M) / (N - 1) of all bytes cross the core.

Both arrive as Poisson processes.  Given the number of arrivals, they are independent and uniform,
so the load determines their number, and a run has exactly that load.
"""

from experiments.traffic.plan import Message, Plan, core_rate, crossing

SHORT, LONG = range(2)
# Minimum ns between two short messages of a connection, where possible.  Messages are independent,
# but TCP delivers the later one only after the earlier one.
SPACING = 2_000_000
CLASSES = ("short", "long")


def offered(config, load):
    """The total rate of the hosts, bit/s, at a load in percent."""
    return load / 100 * core_rate(config) / crossing(config)


def duration(config, load):
    """The measured time, ns: --duration, or the time of --messages short messages."""
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
            # First the senders whose connection was idle for SPACING, which may be too few.
            others.sort(key=lambda src: at - last.get((src, dst), -SPACING) < SPACING)
            for src in others[:degree]:
                last[src, dst] = at
                # Short messages use one persistent connection for each pair of hosts.
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
        """Add endless flows: --long-flows, or the number of links that the load fills.  All hosts
        send one before a host sends a second one."""
        hosts = range(self.config["hosts"])
        sources = []
        while len(sources) < number:
            sources += self.random.sample(hosts, min(number - len(sources), len(hosts)))
        for src in sources:
            dst = self.random.choice([host for host in hosts if host != src])
            self.messages.append(Message(0, self.connect(src, dst, LONG), 0))

    def counts(self, message):
        """Whether the message is measured: it has an end, and begins after the warm-up."""
        return message.at >= self.config["warm_up"] and message.bytes
