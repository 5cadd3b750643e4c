# SPDX-License-Identifier: GPL-2.0
"""The packets of tun devices, many by one system call.

User-Mode Linux traps each system call of a program, which takes several times as long as the work
of most of them.  io_submit(2) executes a list of reads and writes.  Those of a tun device that does
not block are complete when it returns, in the order of the list, and their results are in the ring
that io_setup(2) maps into the program's memory.
"""
import ctypes
import errno
import os
import struct

# Numbers of system calls on x86-64; libc has no functions for them.
_IO_SETUP, _IO_DESTROY, _IO_SUBMIT = 206, 207, 209
_READ, _WRITE = 0, 1
# struct iocb: data, key, rw_flags, opcode, priority, fd, buffer, bytes, offset, reserved, flags, resfd
_REQUEST = struct.Struct("QIIHhIQQqQII")
# struct aio_ring: words of 32 bits, id, number of events, head, tail, magic, two sets of features and
# the length of these words; then the events, each four words of 64 bits: the request's data, its
# address, its result, a second result.
_EVENTS, _HEAD, _MAGIC, _LENGTH = 1, 2, 4, 7
_EVENT, _RESULT = 4, 2
_IS_RING = 0xa10a10a1
# Requests of one call: writes, and reads of each device.
_WRITES, _READS = 16, 4
_ROOM = 1 << 16         # bytes, maximum of an IP packet

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long, ctypes.c_ulong, ctypes.c_long, ctypes.c_void_p]


def _call(number, first, second=0, third=None):
    result = _syscall(number, first, second, third)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result


def _memory(address, length, kind):
    """The bytes there, as a sequence of struct's kind."""
    return memoryview((ctypes.c_char * length).from_address(address)).cast("B").cast(kind)


class Batch:
    """Writes to tun devices, and reads of all packets that they have."""

    def __init__(self, fds):
        self._reads = len(fds) * _READS
        number = _WRITES + self._reads
        context = ctypes.c_ulong()
        _call(_IO_SETUP, number, ctypes.addressof(context))
        self._context = context.value
        self._ring = _memory(self._context, 32, "I")
        if self._ring[_MAGIC] != _IS_RING:
            raise OSError(errno.ENOSYS, "io_setup() maps no ring")
        self._events = self._ring[_EVENTS]
        self._results = _memory(self._context + self._ring[_LENGTH], 8 * _EVENT * self._events, "q")
        room = ctypes.create_string_buffer(number * _ROOM)
        self._at, self._packets = ctypes.addressof(room), memoryview(room).cast("B")
        self._requests = ctypes.create_string_buffer(number * _REQUEST.size)
        first = ctypes.addressof(self._requests)
        # The reads follow the writes, because they find the answers to them.
        self._list = (ctypes.c_ulong * number)(*(first + i * _REQUEST.size for i in range(number)))
        for i in range(self._reads):
            self._request(_WRITES + i, _READ, fds[i // _READS], _ROOM)

    def _request(self, number, opcode, fd, length):
        _REQUEST.pack_into(self._requests, number * _REQUEST.size, 0, 0, 0, opcode, 0, fd,
                           self._at + number * _ROOM, length, 0, 0, 0, 0)

    def __call__(self, packets):
        """Write packets, [(fd, bytes)], in their order; then read.  Returns the packets of each
        device."""
        found = [[] for _ in range(self._reads // _READS)]
        more = True
        while more:
            chunk, packets = packets[:_WRITES], packets[_WRITES:]
            results = self._submit(chunk)
            for result in results[:len(chunk)]:
                if result < 0:
                    raise OSError(-result, os.strerror(-result))
            more = bool(packets)
            for i, result in enumerate(results[len(chunk):]):
                if result > 0:
                    at = (_WRITES + i) * _ROOM
                    found[i // _READS].append(bytes(self._packets[at:at + result]))
                    more |= i % _READS == _READS - 1
                elif result != -errno.EAGAIN:
                    raise OSError(-result, os.strerror(-result))
        return found

    def _submit(self, packets):
        """The results of writes and of all reads: bytes, or a negative errno."""
        first = _WRITES - len(packets)
        for number, (fd, packet) in enumerate(packets, first):
            at = number * _ROOM
            self._packets[at:at + len(packet)] = packet
            self._request(number, _WRITE, fd, len(packet))
        count = len(packets) + self._reads
        done = _call(_IO_SUBMIT, self._context, count, ctypes.byref(self._list, 8 * first))
        if done != count:
            raise OSError(errno.EAGAIN, f"io_submit() executes {done} of {count} requests")
        head = self._ring[_HEAD]
        self._ring[_HEAD] = (head + count) % self._events
        return [self._results[_EVENT * ((head + i) % self._events) + _RESULT]
                for i in range(count)]

    def close(self):
        """Free the kernel's part."""
        _call(_IO_DESTROY, self._context)
