# SPDX-License-Identifier: GPL-2.0
"""What a figure's runs were of, in words: hosts, tiers, oversubscription, sizes of flows.

It is read off the configuration that each run has recorded, so it cannot say what the paper
has where we have less.
"""

_TIERS = {"star": 1, "dumbbell": 2, "leaf-spine": 2, "fat-tree": 3}


def _size(count):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if count >= unit and not count % unit:
            return f"{count // unit} {name}"
    return f"{count / 1000:g} kB" if count >= 1000 else f"{count} B"


def _rate(bits):
    return f"{bits / 1e9:g} Gbit/s"


def _network(config):
    rate = _rate(config["rate"])
    if config["experiment"] == "redis":
        return f"8 web servers and Redis at one switch, {rate}"
    if "topology" not in config:
        return f"{config['senders']} hosts to 1 at one switch, {rate}"
    tiers = _TIERS[config["topology"]]
    words = f"{config['hosts']} hosts, {tiers} tier{'s' * (tiers > 1)}"
    if config["topology"] == "leaf-spine":
        words += f", {config['hosts'] / config['leaves'] / config['spines']:g}:1"
    elif config["topology"] == "fat-tree":
        words += ", 1:1"
    return f"{words}, {rate}"


def _traffic(config):
    kind = config["experiment"]
    if kind == "load":
        found = []
        if config["background"]:
            found.append(f"{config['background']} flows of {config['workload'].replace('-', ' ')}")
        if config["foreground"] and config["incasts"] or not config["background"]:
            found.append(f"incasts of {config['senders']} x {config['each']} x"
                         f" {_size(config['bytes'])}")
        return ", ".join(found)
    if kind == "deflect":
        sizes = ", ".join(_size(size) for size in config["bytes"])
        return (f"incasts of {config['degree']} messages of {sizes}, {config['short']} % of the"
                f" load; long flows of {_size(config['long_bytes'])}")
    size = _size(config["bytes"])
    if kind == "redis":
        aside = f" beside one of {_size(config['background'])}" if config["background"] else ""
        return f"SETs of {size}{aside}"
    return f"messages of {size}"


def _configs(result):
    """Of a result: an experiment may have several sizes, each run one of them."""
    sizes = dict.fromkeys(run["bytes"] for run in result["runs"]
                          if isinstance(run.get("bytes"), int))
    return [result["config"] | {"bytes": size} for size in sizes] or [result["config"]]


def _seeds(results):
    seeds = {run.get("seed") for result in results for run in result["runs"]} - {None}
    seeds |= {result["config"].get("seed") for result in results} - {None}
    return f"{len(seeds)} seed{'s' * (len(seeds) > 1)}" if seeds else ""


def words(results):
    """Of a figure's results; what varies from run to run is said once for each value."""
    results = [result for result in results if result]
    if not results:
        return ""
    configs = [config for result in results for config in _configs(result)]
    networks = dict.fromkeys(map(_network, configs))
    traffic = list(dict.fromkeys(map(_traffic, configs)))
    if len(traffic) > 4:        # the axis has them
        traffic = [traffic[0], f"{len(traffic) - 1} others"]
    parts = [" or ".join(networks), " or ".join(filter(None, traffic)), _seeds(results)]
    return "; ".join(filter(None, parts))
