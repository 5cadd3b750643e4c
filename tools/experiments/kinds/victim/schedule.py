# SPDX-License-Identifier: GPL-2.0
"""The schedule of periodic incasts, and of the victim, an endless flow."""

from experiments.traffic.plan import Message, Plan

INCAST, VICTIM = range(2)


class Schedule(Plan):
    """The victim begins at time 0, the first incast --lead later, and the others --gap apart."""

    classes = ("incast", "victim")

    def __init__(self, config):
        super().__init__(1)
        senders, each = config["senders"], config["flows"] // config["senders"]
        self.end = config["lead"] + config["rounds"] * config["gap"]
        self.messages.append(Message(0, self.connect(senders, senders + 2, VICTIM), 0))
        flows = [self.connect(sender, senders + 1, INCAST)
                 for _ in range(each) for sender in range(senders)]
        self.messages += [Message(config["lead"] + number * config["gap"], flow, config["bytes"])
                          for number in range(config["rounds"]) for flow in flows]
