"""Beside each plugin stands what the operator's role needs for it; the shipped ClusterRole grants that and no less."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from trainwright.pipeline.framework import Framework, NamedWatch
from trainwright.plugins import load

CLUSTER_ROLE = Path(__file__).parents[3] / "manifests" / "base" / "rbac" / "cluster_role.yaml"
SENTENCE = re.compile(r"The operator's role needs(?:, in `(?P<group>[^`]+)`)?: (?P<rest>[^.]+)\.")
GRANT = re.compile(r"(?P<verbs>\w+(?:, \w+)*(?: and \w+)?) of `(?P<resource>\w+)`")

FRAMEWORK: Framework = load(discovered={}, progress_server="https://server")
WATCHES = FRAMEWORK.watches

Needs = dict[tuple[str, str], set[str]]


def documented(plugin: str) -> Needs:
    """What the docstring of the plugin's module asks for: verbs by group and resource."""
    [found] = [it for it in FRAMEWORK.plugins if it.name == plugin]
    text = " ".join((sys.modules[type(found).__module__].__doc__ or "").split())
    return {
        (sentence["group"] or "", grant["resource"]): set(re.split(r", | and ", grant["verbs"]))
        for sentence in SENTENCE.finditer(text)
        for grant in GRANT.finditer(sentence["rest"].replace(", and ", "; "))
    }


def granted() -> Needs:
    role = next(iter(yaml.safe_load_all(CLUSTER_ROLE.read_text())))
    verbs: Needs = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs.setdefault((group, resource), set()).update(rule["verbs"])
    return verbs


@pytest.mark.parametrize("named", WATCHES, ids=lambda named: named.plugin)
def test_a_plugin_documents_what_its_kinds_need(named: NamedWatch) -> None:
    resource = named.watch.resource
    wanted = {"create", "get", "list", "patch", "watch"} | ({"delete"} if named.watch.workload else set())
    if named.watch.part_of:  # the workload's own controller makes them
        wanted -= {"create", "get"}
    assert documented(named.plugin)[resource.group, resource.plural] == wanted


@pytest.mark.parametrize("plugin", [plugin.name for plugin in FRAMEWORK.plugins])
def test_the_shipped_role_grants_what_a_plugin_documents(plugin: str) -> None:
    for what, verbs in documented(plugin).items():
        assert verbs <= granted()[what], what


def test_plugins_that_make_secrets_document_it() -> None:
    assert {plugin.name for plugin in FRAMEWORK.plugins if documented(plugin.name).get(("", "secrets"))} == {
        "MPI",
        "Flux",
    }
    assert granted()["", "secrets"] == {"create"}
