"""The way does not matter, and there is a way back: laws of what users change in a suspended TrainJob (Z2, after Acto).

Random TrainJobs S0, S1, S2: S0 → S1 → S2 ends as S0 → S2 (path independence), and S0 → S1 → S0 as S0 (roll-back), on
what the operator makes of them. 40 transitions by default; `make test-long` runs 2,000.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from trainwright.api.resources import JOB_SETS, NAMESPACES, TRAIN_JOBS
from trainwright.schema.jsonobject import Json
from trainwright.testing.endstate import masked
from trainwright.testing.plans.stage import Stage
from trainwright.testing.plans.workloads import Player, cluster_runtime, train_job

TRANSITIONS = int(os.environ.get("TRAINWRIGHT_TRANSITIONS", "40"))
OPTIONS: dict[str, list[Any]] = {
    "nodeSelector": [{"a": "1"}, {"a": "2"}, {"b": "1"}],
    "tolerations": [[{"key": "gpu", "operator": "Exists"}], [{"key": "spot", "operator": "Exists"}]],
    "schedulingGates": [[{"name": "example.com/wait"}]],
    "affinity": [{"nodeAffinity": {}}, {"podAntiAffinity": {}}],
}


def draw(random_: random.Random) -> list[Json]:
    """The runtimePatches of a TrainJob: of no, one or two managers."""
    patches = []
    for manager in random_.sample(["example.com/a", "example.com/b"], random_.randint(0, 2)):
        names = random_.sample(sorted(OPTIONS), random_.randint(1, 3))
        pod = {name: random_.choice(OPTIONS[name]) for name in names}
        template = {"spec": {"template": {"spec": pod}}}
        jobs = [{"name": "node", "template": template}]
        patches.append({"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}})
    return patches


class World:
    def __init__(self, stage: Stage, player: Player) -> None:
        self._stage = stage
        self._player = player
        self._count = 0

    async def end_of(self, *states: list[Json]) -> Json:
        """The JobSet of a TrainJob that went through these states while it was suspended, and was resumed."""
        self._count += 1
        name = f"hang-{self._count}"
        await self._player.create(TRAIN_JOBS, train_job(name, suspend=True, runtimePatches=states[0]))
        await self._stage.wait(2)
        for state in states[1:]:
            await self._player.change(TRAIN_JOBS, name, {"spec": {"runtimePatches": state}})
            await self._stage.wait(2)
        await self._player.change(TRAIN_JOBS, name, {"spec": {"suspend": False}})
        await self._stage.wait(4)
        found = self._player.find(JOB_SETS, name)
        assert found is not None
        await self._player.remove(TRAIN_JOBS, name)
        made: Json = masked(found, "JobSet", name)
        made["metadata"]["annotations"].pop("trainwright.dev/trainjob-generation")
        return {"metadata": made["metadata"], "spec": made["spec"]}


@pytest.mark.timeout(3600)
async def test_the_way_does_not_matter_and_there_is_a_way_back() -> None:
    random_ = random.Random(7)
    stage = Stage()
    await stage.begin((), [])
    async with stage:
        player = Player(stage)
        await player.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
        await stage.start_operators()
        await player.start("hang-first", cluster_runtime(torch={}))
        world = World(stage, player)
        done = 0
        while done < TRANSITIONS:
            first, second, third = (draw(random_) for _ in range(3))
            direct = await world.end_of(first, third)
            assert await world.end_of(first, second, third) == direct, (first, second, third)
            assert await world.end_of(third, second, third) == await world.end_of(third), (third, second)
            done += 5
