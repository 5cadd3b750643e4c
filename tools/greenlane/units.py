# SPDX-License-Identifier: GPL-2.0
"""Numbers and names in readable form."""


def visible(name):
    """A name from another user in a form that no terminal interprets: characters that cannot be
    printed, a backslash and bytes that are not UTF-8 become \\xNN or \\uNNNN."""
    return "".join(c if c.isprintable() and c != "\\" else
                   f"\\x{ord(c) & 0xff:02x}" if ord(c) < 0x100 or 0xdc80 <= ord(c) <= 0xdcff else
                   f"\\u{ord(c):04x}" for c in name)


def amount(number):
    """At most six characters: 0, 999, 12.3k, 4.56M; SI prefixes."""
    if number < 1000:
        return str(int(number))
    for unit in "kMGTPE":
        number /= 1000
        if number < 999.5:
            return f"{number:.3g}{unit}"
    return f"{number:.3g}E"


def plural(number, noun):
    """1 packet, 2 packets."""
    return f"{amount(number)} {noun}{'' if number == 1 else 's'}"


def duration(us):
    """Microseconds, in a suitable unit."""
    return f"{us} us" if us < 10000 else f"{us / 1000:.3g} ms"


def ago(seconds):
    """A duration in seconds, in a suitable unit."""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def rate(byte_rate):
    """Bytes a second as the rate of a link."""
    return amount(byte_rate * 8) + "bit/s"
