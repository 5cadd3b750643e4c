# SPDX-License-Identifier: GPL-2.0
"""The topologies of datacenter networks, as lists of links.

    incast      --senders and one receiver at one switch
    star        every host at one switch
    dumbbell    two switches with half of the hosts each, and one link between them
    trunk       --senders and one more at a switch, and two receivers at another
    pairs       a dumbbell of four hosts with names: a1, a2, b1, b2
    leaf-spine  --hosts at --leaves, each leaf linked to each of --spines
    pods        --hosts at --leaves in --pods; each leaf linked to each of its pod's --spines,
                which divide --cores among themselves
    fat-tree    of k-port switches: k pods of k/2 edges and k/2 aggregates, (k/2)^2 cores

Each link connects a host or a switch with a switch above it, nearer to the core, and the links have
no cycle in that direction: so a path that leads first up and then down has no loop.
"""

import collections

# hosts and switches are names; links are (below, above).
Topology = collections.namedtuple("Topology", ["hosts", "switches", "links"])


def _hosts(number):
    return [f"h{i}" for i in range(number)]


RECEIVER = "r"


def incast(config):
    """Senders s0, s1 ... and the receiver r."""
    hosts = [f"s{i}" for i in range(config["senders"])] + [RECEIVER]
    return Topology(hosts, ["sw"], [(host, "sw") for host in hosts])


def star(config):
    """Hosts at one switch."""
    hosts = _hosts(config["hosts"])
    return Topology(hosts, ["sw0"], [(host, "sw0") for host in hosts])


def dumbbell(config):
    """Two switches with half of the hosts each, and one link between them."""
    hosts = _hosts(config["hosts"])
    half = (len(hosts) + 1) // 2
    links = [(host, f"sw{i >= half:d}") for i, host in enumerate(hosts)]
    return Topology(hosts, ["sw0", "sw1"], links + [("sw0", "sw1")])


def trunk(config):
    """Senders s0, s1 ... at a switch, receivers r0 and r1 at another, and one link between them."""
    senders = [f"s{i}" for i in range(config["senders"] + 1)]
    links = [(host, "sw0") for host in senders] + [("r0", "sw1"), ("r1", "sw1"), ("sw0", "sw1")]
    return Topology([*senders, "r0", "r1"], ["sw0", "sw1"], links)


def pairs(_config):
    """Two switches with two hosts each, and one link between them."""
    links = [("a1", "sw1"), ("a2", "sw1"), ("b1", "sw2"), ("b2", "sw2"), ("sw1", "sw2")]
    return Topology(["a1", "a2", "b1", "b2"], ["sw1", "sw2"], links)


def leaf_spine(config):
    """Two tiers, all leaves linked to all spines, or to the first `uplinks` of them."""
    hosts = _hosts(config["hosts"])
    leaves = [f"leaf{i}" for i in range(config["leaves"])]
    spines = [f"spine{i}" for i in range(config.get("uplinks") or config["spines"])]
    at_leaf = len(hosts) // len(leaves)
    links = [(host, leaves[i // at_leaf]) for i, host in enumerate(hosts)]
    links += [(leaf, spine) for leaf in leaves for spine in spines]
    return Topology(hosts, leaves + spines, links)


def pods(config):
    """Three tiers.  The aggregates of a pod are linked to different cores, of equal number."""
    number, in_pod = config["pods"], config["spines"]
    hosts = _hosts(config["hosts"])
    edges = [f"edge{i}" for i in range(config["leaves"])]
    aggregates = [f"agg{i}" for i in range(number * in_pod)]
    cores = [f"core{i}" for i in range(config["cores"])]
    at_edge, edges_of, cores_of = (len(hosts) // len(edges), len(edges) // number,
                                   len(cores) // in_pod)
    links = [(host, edges[i // at_edge]) for i, host in enumerate(hosts)]
    links += [(edge, aggregates[i // edges_of * in_pod + j])
              for i, edge in enumerate(edges) for j in range(in_pod)]
    links += [(aggregate, cores[i % in_pod * cores_of + j])
              for i, aggregate in enumerate(aggregates) for j in range(cores_of)]
    return Topology(hosts, edges + aggregates + cores, links)


def fat_tree(config):
    """Three tiers of switches with k ports (Al-Fares et al., SIGCOMM 2008)."""
    k, half = config["k"], config["k"] // 2
    return pods({"hosts": k * half**2, "pods": k, "leaves": k * half, "spines": half,
                 "cores": half**2})


TOPOLOGIES = {"incast": incast, "star": star, "dumbbell": dumbbell, "trunk": trunk,
              "pairs": pairs, "leaf-spine": leaf_spine, "pods": pods, "fat-tree": fat_tree}


# The values of --topology.
CHOICES = ("star", "dumbbell", "leaf-spine", "fat-tree")


def add_arguments(add):
    """Add the options that select a topology."""
    add("--topology", choices=CHOICES, default="leaf-spine", help="(leaf-spine)")
    add("--hosts", type=int, help="of all but the fat-tree (star 9, dumbbell 8, leaf-spine 64)")
    add("--leaves", type=int, default=4, help="of the leaf-spine (4)")
    add("--spines", type=int, default=4, help="of the leaf-spine (4)")
    add("--k", type=int, default=4, help="ports of a switch of the fat-tree (4: 16 hosts)")


def settle(args):
    """Set the defaults of missing options; returns an error message, or None."""
    if args.topology == "fat-tree":
        if args.hosts is not None:
            return "--hosts: of a fat-tree, --k says it"
        if args.k % 2 or not 2 <= args.k <= 16:
            return "--k: an even number from 2 to 16"
        args.hosts = args.k**3 // 4
        return None
    if args.hosts is None:
        args.hosts = {"star": 9, "dumbbell": 8}.get(args.topology, 64)
    most = {"star": 250, "dumbbell": 500}.get(args.topology, 250 * args.leaves)
    if not 2 <= args.hosts <= most:
        return f"--hosts: from 2 to {most}"
    if args.topology == "leaf-spine":
        if args.leaves < 2 or args.hosts % args.leaves:
            return "--hosts: as many at each of the --leaves, which are 2 at least"
        if args.leaves > 150 or not 1 <= args.spines <= 16:
            return "--leaves and --spines: at most 150, and 16"
    return None
