# SPDX-License-Identifier: GPL-2.0
"""The set-up of a figure's runs, in words: hosts, tiers, oversubscription, sizes of flows.

It is read off the configuration that each run has recorded, so it cannot claim the size of
the paper's network where ours is smaller.
"""

from experiments.traffic.plan import core_rate

_TIERS = {"star": 1, "dumbbell": 2, "leaf-spine": 2, "pods": 3, "fat-tree": 3}


def _size(count):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if count >= unit and not count % unit:
            return f"{count // unit} {name}"
    return f"{count / 1000:g} kB" if count >= 1000 else f"{count} B"


def _rate(bits):
    return f"{bits / 1e9:g} Gbit/s"


def _each(configs, key, text=str):
    """The values of all of them: 20, 40 or 60."""
    said = list(dict.fromkeys(text(config[key]) for config in configs))
    if len(said) > 4:
        said = [said[0], "...", said[-1]]
        return " ".join(said)
    return " or ".join(filter(None, (", ".join(said[:-1]), said[-1])))


def _sizes(sizes):
    return ", ".join(map(_size, sizes))


def _network(configs):
    config, rate = configs[0], _each(configs, "rate", _rate)
    if config["experiment"] == "redis":
        return f"8 web servers and Redis at one switch, {rate}"
    if "topology" not in config:
        return f"{_each(configs, 'senders')} hosts to 1 at one switch, {rate}"
    if config["topology"] == "trunk":
        return (f"{_each(configs, 'senders')} hosts to 1 and 1 to 1 over a trunk of"
                f" {_each(configs, 'trunk', _rate)}, {rate}")
    tiers = _TIERS[config["topology"]]
    words = f"{_each(configs, 'hosts')} hosts, {tiers} tier{'s' * (tiers > 1)}"
    if config["topology"] in ("leaf-spine", "pods"):
        words += f", {config['hosts'] * config['rate'] / core_rate(config):g}:1"
    elif config["topology"] == "fat-tree":
        words += ", 1:1"
    return f"{words}, {rate}"


def _load(configs):
    found, config = [], configs[0]
    if config["background"]:
        name = _each(configs, "workload", lambda workload: workload.replace("-", " "))
        found.append(f"{_each(configs, 'background')} flows of {name}")
    if any(config["foreground"] and config["incasts"] or not config["background"]
           for config in configs):
        found.append(f"incasts of {_each(configs, 'senders')} x {_each(configs, 'each')} x"
                     f" {_each(configs, 'bytes', _size)}")
    return ", ".join(found) + f", load {_each(configs, 'load')} %"


def _long_flows(configs):
    if configs[0].get("long_flows"):
        return f"{_each(configs, 'long_flows')} long flows without an end"
    return f"long flows of {_each(configs, 'long_bytes', _size)}"


def _traffic(configs):
    kind = configs[0]["experiment"]
    if kind == "load":
        return _load(configs)
    if kind == "deflect":
        return (f"incasts of {_each(configs, 'degree')} messages of"
                f" {_each(configs, 'bytes', _sizes)}, {_each(configs, 'short')} % of the load"
                f" of {_each(configs, 'load')} %; {_long_flows(configs)}")
    size = _each(configs, "bytes", _size)
    if kind == "victim":
        return f"{_each(configs, 'flows')} flows of {size} beside one without an end"
    if kind == "redis":
        aside = configs[0]["background"]
        return f"SETs of {size}" + (f" beside one of {_size(aside)}" if aside else "")
    return f"messages of {size}"


def _configs(result):
    """Of a result: an experiment may have several sizes and loads, each run one of them."""
    return [result["config"] | {name: run[name] for name in ("bytes", "load")
                                if isinstance(run.get(name), int)} for run in result["runs"]]


def _seeds(results):
    seeds = {run.get("seed") for result in results for run in result["runs"]} - {None}
    seeds |= {result["config"].get("seed") for result in results} - {None}
    return f"{len(seeds)} seed{'s' * (len(seeds) > 1)}" if seeds else ""


_BASES = {"paper": "over the papers' base", "linux": "over today's Linux"}


def _base(config):
    """The base in words, with the uplinks that it uses if that is not all of them."""
    words, uplinks = _BASES[config.get("base", "linux")], config.get("uplinks")
    return f"{words} with {uplinks} of {config['spines']} uplinks" if uplinks else words


def _bases(configs):
    """The bases; an empty text if today's Linux is the only one."""
    bases = dict.fromkeys(map(_base, configs))
    return " and ".join(bases) if set(bases) != {_BASES["linux"]} else ""


def words(results):
    """Of a figure's results; what varies from run to run is said once for each value."""
    results = [result for result in results if result]
    if not results:
        return ""
    configs = [config for result in results for config in _configs(result)]
    parts = [_network(configs), _traffic(configs), _bases(configs), _seeds(results)]
    return "; ".join(filter(None, parts))
