"""The two shell scripts of a Flux job, and the broker's configuration, as text.

`init.sh` runs in the view image and lays out Flux and its configuration under /mnt/flux; `entrypoint.sh` runs in the
user's image, starts a broker on every node and submits the command from the first. In: a `Cluster`. Out: script text
that depends on nothing else.
"""

from __future__ import annotations

from string import Template
from typing import NamedTuple


class Cluster(NamedTuple):
    """The brokers of one job."""

    name: str
    namespace: str
    nodes: int
    tasks: int
    """Processes on each node."""
    gpus: int
    network_device: str
    queue_policy: str

    @property
    def hosts(self) -> str:
        return f"{self.name}-node-0-[{_range(self.nodes)}]"

    @property
    def main_host(self) -> str:
        return f"{self.name}-node-0-0"

    @property
    def resources(self) -> str:
        """What one node offers, as `flux R encode` takes it."""
        return f"--cores={_range(self.tasks)}" + (f" --gpu={_range(self.gpus)}" if self.gpus > 0 else "")

    @property
    def run_flags(self) -> str:
        """How the command is spread, as `flux run` takes it."""
        return f"-N {self.nodes} -n {self.tasks * self.nodes}" + (f" -g {self.gpus}" if self.gpus > 0 else "")


def _range(count: int) -> str:
    return "0" if count == 1 else f"0-{count - 1}"


_BROKER = Template("""\
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "/mnt/flux/config/etc/flux/system/R"

[bootstrap]
curve_cert = "/mnt/flux/config/etc/curve/curve.cert"
default_port = 8050
default_bind = "tcp://$device:%p"
default_connect = "tcp://%h.$name.$namespace.svc.cluster.local:%p"
hosts = [
    { host = "$hosts" },
]

[archive]
dbpath = "/mnt/flux/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = "$queue_policy"
""")

_INIT = Template("""\
#!/bin/bash
# Lays out Flux for this pod under /mnt/flux, which the training container mounts too.
set -eu

config=/mnt/flux/config
mkdir -p "$$config/etc/flux/system/cron.d" "$$config/etc/flux/config" "$$config/etc/curve"
mkdir -p "$$config/var/lib/flux" "$$config/run/flux"

echo '$hosts' > "$$config/etc/flux/system/hostlist"
cat > "$$config/etc/flux/config/broker.toml" << 'BROKER'
$broker
BROKER

# The view holds Flux's programs; they were built to run from /opt/software, so that tree goes along.
mkdir -p /mnt/flux/view
cp -R /opt/views/._view/*/* /mnt/flux/view
cp -R /opt/software /mnt/flux/software

touch /mnt/flux/flux-operator-done.txt
""")

_ENTRYPOINT = Template("""\
#!/bin/bash
# Starts a Flux broker on this node; on the first node it also submits the command given as arguments.

view=/mnt/flux/view
config=/mnt/flux/config

export PATH="$$PATH:$$view/bin"
cp -R /mnt/flux/software/* /opt/software/

# The view's own Python, whichever minor version it is.
library=$$(find "$$view/lib" -maxdepth 1 -type d -name 'python3*' | head -n 1)
ln -sf "$$view/bin/$$(basename "$$library")" "$$view/bin/python3"
export PYTHONPATH="$${PYTHONPATH:+$$PYTHONPATH:}$$library/site-packages"
export FLUX_RC_EXTRA="$$view/etc/flux/rc1.d"

# For people who come in by `kubectl exec`.
cat > /mnt/flux/load-fluxion.sh << 'SCRIPT'
#!/bin/bash
flux module remove sched-simple
flux module load sched-fluxion-resource
flux module load sched-fluxion-qmanager
SCRIPT
cat > /mnt/flux/flux-view.sh << SCRIPT
#!/bin/bash
export PATH="$$PATH"
export PYTHONPATH="$$PYTHONPATH"
export FLUX_RC_EXTRA="$$FLUX_RC_EXTRA"
export fluxsocket=local://$$config/run/flux/local
SCRIPT
chmod +x /mnt/flux/load-fluxion.sh /mnt/flux/flux-view.sh

# The certificate is mounted read-only and readable by a group; Flux wants it private and owned by the user who runs.
cp /curve/curve.cert "$$config/etc/curve/curve.cert"
chmod u=rw,go-rwx "$$config/etc/curve/curve.cert"
chown "$$(id -u)" "$$config/etc/curve/curve.cert"

flux R encode --hosts="$$(cat "$$config/etc/flux/system/hostlist")" $resources > "$$config/etc/flux/system/R"

options="-Scron.directory=$$config/etc/flux/system/cron.d -Stbon.fanout=256"
options="$$options -Srundir=$$config/run/flux -Sstatedir=$$config/var/lib/flux"
options="$$options -Slocal-uri=local://$$config/run/flux/local -Slog-stderr-level=0 -Slog-stderr-mode=local"

result=0
if [ "$$(hostname)" = '$main_host' ]; then
    if [ -z "$$*" ]; then
        # Nothing to run: a broker that waits for somebody to connect.
        flux broker --config-path "$$config/etc/flux/config" $$options || result=$$?
    else
        # The command is one line of words; the shell splits it here on purpose.
        flux start -o --config "$$config/etc/flux/config" $$options flux run $run_flags $$@ || result=$$?
    fi
else
    # The first node may not be up yet, and a broker that cannot reach it gives up: try again until the job is over.
    until flux start -o --config "$$config/etc/flux/config" $$options; do
        sleep 15
    done
fi

touch /mnt/flux/flux-operator-complete.txt
exit $$result
""")


def init_script(cluster: Cluster) -> str:
    broker = _BROKER.substitute(
        device=cluster.network_device,
        name=cluster.name,
        namespace=cluster.namespace,
        hosts=cluster.hosts,
        queue_policy=cluster.queue_policy,
    )
    return _INIT.substitute(hosts=cluster.hosts, broker=broker.rstrip("\n"))


def entrypoint_script(cluster: Cluster) -> str:
    return _ENTRYPOINT.substitute(resources=cluster.resources, main_host=cluster.main_host, run_flags=cluster.run_flags)
