# SPDX-License-Identifier: GPL-2.0
"""Packets that wait in an NFQUEUE until the test accepts them."""
import contextlib
import errno
import select
import socket
import struct
import subprocess
import threading

NETLINK_NETFILTER = 12
SUBSYSTEM = 3                   # NFNL_SUBSYS_QUEUE
VERDICT, CONFIG = 1, 2          # NFQNL_MSG_*
NLM_F_REQUEST, NLM_F_ACK = 1, 4
COMMAND, PARAMS = 1, 2          # NFQA_CFG_*
BIND, COPY_PACKET = 1, 2
PACKET_HDR, VERDICT_HDR = 1, 2  # NFQA_*
NF_ACCEPT = 1
TABLE = "table inet held {{ chain c {{ {}; }}; }}"


def _attribute(kind, data):
    return struct.pack("HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


class Queue:
    """Queue 0 of a namespace, and the nftables chain that fills it."""

    def __init__(self, ns, chain):
        with ns:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
            self._socket.bind((0, 0))
            self._send(CONFIG, _attribute(COMMAND, struct.pack("!BBH", BIND, 0, 0)))
            self._send(CONFIG, _attribute(PARAMS, struct.pack("!IB", 1 << 16, COPY_PACKET)))
            subprocess.run(["nft", TABLE.format(chain)], check=True)

    def _send(self, kind, attributes, flags=NLM_F_REQUEST | NLM_F_ACK):
        body = struct.pack("!BBH", 0, 0, 0) + attributes
        self._socket.send(struct.pack("IHHII", 16 + len(body), SUBSYSTEM << 8 | kind, flags,
                                      0, 0) + body)
        if flags & NLM_F_ACK:
            error = struct.unpack_from("i", self._socket.recv(1 << 16), 16)[0]
            if error:
                raise OSError(-error, "NFQUEUE")

    def packets(self):
        """The numbers of the packets queued since the last call."""
        numbers = []
        while True:
            try:
                message = self._socket.recv(1 << 17, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return numbers
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                continue
            at, end = 20, struct.unpack_from("I", message)[0]
            while at < end:
                length, kind = struct.unpack_from("HH", message, at)
                if kind & 0x7fff == PACKET_HDR:
                    numbers.append(struct.unpack_from("!I", message, at + 4)[0])
                at += (length + 3) & ~3

    def accept(self, number):
        """Accept the packet with this number."""
        self._send(VERDICT, _attribute(VERDICT_HDR, struct.pack("!II", NF_ACCEPT, number)),
                   NLM_F_REQUEST)

    @contextlib.contextmanager
    def passing(self):
        """Meanwhile a thread accepts each packet when it is queued."""
        stop = threading.Event()

        def run():
            while not stop.is_set():
                if select.select([self._socket], [], [], 0.001)[0]:
                    for number in self.packets():
                        self.accept(number)
        thread = threading.Thread(target=run)
        thread.start()
        yield
        stop.set()
        thread.join()
