# SPDX-License-Identifier: GPL-2.0
"""lab.toml: the hosts of a lab.

	rate = "25gbit"                 # of the hosts' links; default: of the receiver's device
	rtt = "30us"                    # of the idle network; default: of a first connection

	[[host]]
	name = "r"                      # in messages; without it, ssh
	ssh = "10.0.0.1"                # as for ssh(1): an address, or a name of ~/.ssh/config
	user = "root"                   # these three are optional
	port = 22
	options = ["-i", "key"]
	sudo = false                    # true: the user is not root; `sudo -n` asks no password
	role = "receiver"               # or sender, switch
	address = "192.168.1.1"         # of the traffic,
	device = "eth0"                 # and its device

	[[host]]
	ssh = "switch"
	role = "switch"                 # optional: a Linux switch; its ports get the port's queue
	ports = ["swp1", "swp2"]        # towards the hosts; the first one leads to the receiver
"""

import dataclasses
import ipaddress
import tomllib

from lab import units

ROLES = ("receiver", "sender", "switch")
# A sender's flows have a number modulo the number of senders: MAX_SENDERS of loadgen/incast.c.
MAX_SENDERS = 64


def add_arguments(add, theirs):
    """Add the options of an experiment that runs on a lab too; these options are the lab's."""
    add("--lab", metavar="FILE",
        help=f"on the hosts of this file too, over ssh: {theirs} are theirs")
    add("--no-virtual", dest="virtual", action="store_false",
        help="with --lab: on these hosts only")


def wrong(args):
    """The reason why the command line is refused, or None; reads the file."""
    if not args.lab:
        return None if args.virtual else "--no-virtual: only with --lab"
    if args.base == "paper":
        return "--lab: not with --base paper, which is a kernel of guests"
    if args.ipv6 or not args.tso:
        return "--lab: without --ipv6, --no-tso"
    args.lab = read(args.lab)
    args.ipv6 = ":" in args.lab.receiver.address
    return None


class Wrong(Exception):
    """lab.toml has errors: a message for each."""


@dataclasses.dataclass
class Host:
    """A row of lab.toml."""
    ssh: str
    role: str
    name: str = ""
    user: str = ""
    port: int = 0
    options: list = dataclasses.field(default_factory=list)
    sudo: bool = False
    address: str = ""
    device: str = ""
    ports: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.name = self.name or self.ssh


@dataclasses.dataclass
class Lab:
    """All of lab.toml; rate in bit/s and rtt in ns, or None.  With `mesh` all hosts send to all."""
    hosts: list
    rate: int = None
    rtt: int = None
    mesh: bool = False

    @property
    def receiver(self):
        """The host that receives."""
        return self.of("receiver")[0]

    @property
    def senders(self):
        """The hosts that send."""
        return self.of("sender")

    @property
    def ends(self):
        """The hosts with connections, the receiver last, as in the virtual experiment."""
        return [*self.senders, self.receiver]

    def peers(self, host):
        """The hosts with which a host has connections."""
        if self.mesh:
            return [other for other in self.ends if other is not host]
        return [self.receiver] if host.role == "sender" else self.senders

    def of(self, role):
        """The hosts with this role."""
        return [host for host in self.hosts if host.role == role]


_KINDS = {str: "a string", int: "a number", bool: "true or false", list: "a list of strings"}
_TYPES = {field.name: field.type for field in dataclasses.fields(Host)}
# Keys that a role needs; the other role's keys are errors.
_NEEDS = {"receiver": ("address", "device"), "sender": ("address", "device"), "switch": ("ports",)}


def _has_kind(value, kind):
    if kind is list:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return type(value) is kind


def _host_errors(row):
    """(key, error) of a row of lab.toml."""
    for key, value in row.items():
        if key not in _TYPES:
            yield key, f"unknown; there are {', '.join(_TYPES)}"
        elif not _has_kind(value, _TYPES[key]):
            yield key, f"not {_KINDS[_TYPES[key]]}"
    role = row.get("role")
    if role not in ROLES:
        yield "role", f"{'missing' if role is None else role!r}; there are {', '.join(ROLES)}"
        return
    for key in ("ssh", *_NEEDS[role]):
        if not row.get(key):
            yield key, f"missing: a {role} needs it"
    for key in {"address", "device", "ports"} - {*_NEEDS[role]} & row.keys():
        yield key, f"not of a {role}"
    if isinstance(address := row.get("address"), str) and address:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            yield "address", f"{address!r} is no IPv4 or IPv6 address"
    if isinstance(ssh := row.get("ssh"), str) and ssh.startswith("-"):
        yield "ssh", f"{ssh!r} would be an option of ssh: use options"


def _lab_errors(table, rows):
    """(key, error) of all of lab.toml; `rows` are its hosts."""
    for key in table.keys() - {"rate", "rtt", "host"}:
        yield key, "unknown; there are rate, rtt, host"
    roles = [row.get("role") for row in rows]
    if roles.count("receiver") != 1:
        yield "host", f"{roles.count('receiver')} receivers; one is needed"
    if not 1 <= roles.count("sender") <= MAX_SENDERS:
        yield "host", f"{roles.count('sender')} senders; 1 to {MAX_SENDERS} are needed"
    names = [row.get("name") or row.get("ssh") for row in rows]
    for name in sorted({str(name) for name in names if name and names.count(name) > 1}):
        yield "host", f"two are named {name}: set name"
    addresses = [row["address"] for row in rows if row.get("address")]
    if len({":" in str(address) for address in addresses}) > 1:
        yield "host", "addresses of IPv4 and of IPv6"


def _quantity(table, key, parse):
    """(the value of a key of lab.toml or None, an error or None)"""
    if key not in table:
        return None, None
    try:
        value = parse(table[key])
        return value, None if value else "0"
    except (AttributeError, ValueError) as why:
        return None, str(why) if isinstance(why, ValueError) else "not a string"


def read(path):
    """The Lab of a file; raises Wrong."""
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        raise Wrong(f"{path}: {getattr(why, 'strerror', None) or why}") from None
    found = table.get("host", [])
    if not (isinstance(found, list) and all(isinstance(row, dict) for row in found)):
        raise Wrong(f"{path}: host: not of the form [[host]]")
    wrong = [(f"host {number}: {key}", error) for number, row in enumerate(found, 1)
             for key, error in _host_errors(row)]
    wrong += _lab_errors(table, found)
    values = {}
    for key, parse in (("rate", units.rate), ("rtt", units.time)):
        values[key], error = _quantity(table, key, parse)
        wrong += [(key, error)] * bool(error)
    if wrong:
        raise Wrong("\n".join(f"{path}: {key}: {error}" for key, error in wrong))
    return Lab([Host(**row) for row in found], **values)
