"""What an answer warns of."""

from __future__ import annotations

from typing import Any

import pytest

from trainwright.embedded.apiserver.builtin.podwarnings import pod_warnings


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        (
            {"topologySpreadConstraints": [{"maxSkew": 1}]},
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ),
        (
            {
                "containers": [
                    {"ports": [{"name": "http", "containerPort": 80}]},
                    {"ports": [{"name": "http", "containerPort": 81}]},
                ]
            },
            'spec.containers[1].ports[0]: duplicate port name "http" with spec.containers[0].ports[0], services and'
            " probes that select ports by name will use spec.containers[0].ports[0]",
        ),
        (
            {"containers": [{"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]},
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        ),
        (
            {"containers": [{"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80}]}]},
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
        ),
        ({"imagePullSecrets": [{}]}, 'spec.imagePullSecrets[0].name: invalid empty name ""'),
    ],
)
def test_what_does_nothing_good_is_named(spec: dict[str, Any], warning: str) -> None:
    assert pod_warnings(spec) == [warning]


def test_a_variable_that_builds_on_its_former_value_is_meant() -> None:
    env = [{"name": "PATH", "value": "/a"}, {"name": "PATH", "value": "$(PATH):/b"}]
    assert pod_warnings({"containers": [{"env": env}]}) == []
