# SPDX-License-Identifier: GPL-2.0
"""The guest's half of an experiment: build the network, execute the runs.

	python3 -m experiments.jobs CONFIG.json

The configuration names the experiment and holds the network and a list of jobs (at least
a congestion control and a number of flows).  experiments.kinds.NAME.guest has network(config),
which returns a network that is not built yet, and run(network, config, job), which returns
a dict.  The result of each run is printed on stdout at its end, as one line of JSON.
"""

import importlib
import json
import pathlib
import subprocess
import sys

from lab.net import modules


def main():
    """Run all jobs of the configuration."""
    config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    experiment = importlib.import_module(f"experiments.kinds.{config['experiment']}.guest")
    try:
        modules.load_all()
        network = experiment.network(config)
        network.build()
        print(json.dumps({"ready": True}), flush=True)
        for job in config["jobs"]:
            print(json.dumps(experiment.run(network, config, job)), flush=True)
    except subprocess.CalledProcessError as why:
        sys.exit(f"{config['experiment']}: {why.cmd[0]} failed")    # it has printed the reason


if __name__ == "__main__":
    main()
