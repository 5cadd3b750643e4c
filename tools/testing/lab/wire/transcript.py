# SPDX-License-Identifier: GPL-2.0
"""An exchange of packets as a text: the packets on a wire, and those that it loses.

	> data 1-2			from a: the first two segments
	> data 3		lost
	> data 4-9, important 10
	...				any packets
	< echo
	> data 3			it is retransmitted
	...

Each row has a direction (> from a, < from b) and packets in the order in which they are sent.
A packet is named by its kind and, optionally, its number.  Data packets are numbered by their
sequence numbers, in the order in which the sender first sent these since the exchange began, so
a retransmission has the number of the original.  Credits have their own numbers, from 1.  A
direction that is in no row is not checked.  A # begins a comment.

Losses that follow a pattern need no text:

	wire.rule = lose("> data 1-5", times=3)		# each of the five three times
	wire.rule = lose("> data", every=2)
"""
import contextlib
import math
import re

from lab.codepoints import CREDIT, KINDS, REQUEST
from lab.tap import Failed
from lab.wire import xpass
from lab.wire.packet import ACK, FIN, RST, SYN

_LINE = re.compile(r"([<>])\s+(.*)")
_NAME = re.compile(r"(\*|[a-z-]+(?: [a-z-]+)*?)(?: (\d+)(?:-(\d+))?)?( lost)?")
_ANY = None
# Results of Names.kind() that are not the name of a codepoints.Kind, and * for any kind.
_KINDS = {"*", "syn", "syn-ack", "rst", "fin", "request", "retry", "stop", "unmarked"}


class Names:
    """Names packets in the order in which they are sent: (direction, kind, number)."""

    def __init__(self):
        self._numbers = {True: {}, False: {}}   # {from_a: {sequence number: number}}
        self._credits = {}                      # {from_a: number before its first credit}

    @staticmethod
    def kind(p):
        """The kind of a packet by its TCP flags, its option's words or its codepoint."""
        if p.flags & SYN:
            return "syn-ack" if p.flags & ACK else "syn"
        if p.flags & RST:
            return "rst"
        if p.flags & FIN and not p.len:
            return "fin"
        if p.kind == REQUEST and len(p.words) == 3:
            retry = "retry" if p.words[2] & xpass.RETRY else "request"
            return retry if p.words[2] & xpass.WANT else "stop"
        return str(p.kind) if p.kind else "unmarked"

    def name(self, p):
        """The name of the next packet."""
        number = None
        if p.len:
            seen = self._numbers[p.from_a]
            number = seen.setdefault(p.seq, len(seen) + 1)
        elif p.kind == CREDIT and p.words:
            number = p.words[0] - self._credits.setdefault(p.from_a, p.words[0] - 1)
        return ">" if p.from_a else "<", self.kind(p), number


def _text(name):
    return " ".join(str(part) for part in name if part is not None)


def _parse(line):
    """[(direction, kind, number or None, lost)] of one row."""
    match = _LINE.fullmatch(line)
    if not match:
        raise ValueError(f"not a line of an exchange: {line}")
    found = []
    for text in match[2].split(","):
        name = _NAME.fullmatch(" ".join(text.split()))
        if not name:
            raise ValueError(f"not a packet: {text}")
        kind, first, last, lost = name.groups()
        if kind not in _KINDS | {kind.name for kind in KINDS}:
            raise ValueError(f"not a kind of packet: {kind}")
        numbers = range(int(first), int(last or first) + 1) if first else [None]
        if not numbers:
            raise ValueError(f"no packets: {text}")
        found += [(match[1], kind, number, bool(lost)) for number in numbers]
    return found


def _matches(wanted, name):
    return wanted[0] == name[0] and wanted[1] in ("*", name[1]) and wanted[2] in (None, name[2])


class _Script:
    """The expected packets, and the first packet that differs from them."""

    def __init__(self, text):
        self.left = []
        for line in text.splitlines():
            line = line.partition("#")[0].strip()
            if line:
                self.left += [_ANY] if line == "..." else _parse(line)
        self.directions = {wanted[0] for wanted in self.left if wanted}
        self.names, self.seen, self.wrong = Names(), [], None

    def __call__(self, p):
        """Compare a sent packet with the text; returns whether the wire loses it."""
        name = self.names.name(p)
        if name[0] not in self.directions or self.wrong:
            return False
        self.seen.append(_text(name))
        any_first = bool(self.left) and self.left[0] is _ANY
        wanted = self.left[any_first:][:1]
        if wanted and _matches(wanted[0], name):
            del self.left[:any_first + 1]
            self.seen[-1] += " lost" * wanted[0][3]
            return wanted[0][3]
        if not any_first:
            self.wrong = f"expected {_text(wanted[0][:3]) if wanted else 'no more'}"
        return False

    def finish(self):
        """Fail if the packets differed from the text or some are missing."""
        left = [wanted for wanted in self.left if wanted]
        if not self.wrong and left:
            self.wrong = f"expected {_text(left[0][:3])}, which did not come"
        if self.wrong:
            raise Failed(f"{self.wrong}; saw\n" + "\n".join(self.seen))


@contextlib.contextmanager
def exchange(wire, text):
    """Meanwhile the packets on the wire must be those of the text, and the wire loses those that
    the text marks as lost."""
    script, before = _Script(text), wire.rule
    wire.mark()
    wire.rule = script
    yield
    wire.rule = before
    script.finish()


class lose:     # pylint: disable=invalid-name
    """A rule for a wire that loses the named packets; * is any kind.

    A packet with a number is lost the first `times` times that it is sent (default 1).  Of a kind
    without a number the first `times` packets are lost (default all).  With `every` = N the rule
    considers only every N-th of the named packets.  `dropped` has the lost packets."""

    def __init__(self, *lines, times=None, every=1):
        self.wanted = [wanted for line in lines for wanted in _parse(line)]
        self.times, self.every = times, every
        self.names, self.passed = Names(), 0
        self.lost, self.dropped = {}, []

    def __call__(self, p):
        name = self.names.name(p)
        wanted = next((w for w in self.wanted if _matches(w, name)), None)
        if not wanted:
            return False
        self.passed += 1
        lost, most = self.lost.get(wanted, 0), self.times
        if most is None:
            most = 1 if wanted[2] else math.inf
        if self.passed % self.every or lost >= most:
            return False
        self.lost[wanted] = lost + 1
        self.dropped.append(p)
        return True
