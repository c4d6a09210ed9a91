"""Names, addresses and ports of the pods of one job."""

from __future__ import annotations

import socket

import pytest

from trainwright.embedded.node.network.addresses import (
    Addresses,
    PodName,
    Ports,
    Rewriter,
    free_port,
    host_aliases,
    hosts_file,
    port_here,
)
from trainwright.embedded.node.podspec.declarations import Declarations
from trainwright.schema.jsonobject import Json

PORTS = {"29500": 20123}
DECLARED = Declarations(port_variables=frozenset({"MEET_PORT", "MEET_AT"}), port_flags=frozenset({"--meet-port", "-p"}))


def test_every_pod_gets_an_address_of_its_own_and_keeps_it() -> None:
    addresses = Addresses()
    given = [addresses.of(f"uid-{number}") for number in range(1000)]
    assert len(set(given)) == 1000
    assert addresses.of("uid-7") == given[7]
    assert all(address.startswith("127.") and not address.startswith("127.0.") for address in given)


def test_an_address_taken_before_a_restart_is_not_given_again() -> None:
    first = Addresses().of("a")
    addresses = Addresses({"a": first})
    assert addresses.of("b") != first
    addresses.release("a")
    assert "a" not in addresses.taken


def test_two_clusters_on_one_machine_begin_at_different_addresses() -> None:
    first = [Addresses().of("a") for _ in range(50)]
    assert len(set(first)) > 45, "a second cluster's sshd would meet the first one's on port 2222"
    last = Addresses(_next=(64 << 16) - 3)
    assert [last.of(uid) for uid in "ab"] == ["127.127.255.254", "127.64.0.1"]


def test_a_port_that_somebody_listens_on_is_not_given() -> None:
    with socket.socket() as taken:
        port = free_port(set())
        taken.bind(("", port))
        taken.listen()
        others = set(range(20000, 32000)) - {port, other := free_port({port})}
        assert free_port(others) == other


def test_two_jobs_never_share_a_port_and_one_job_keeps_its_own() -> None:
    ports = Ports()
    one, other = ports.of(("ns", "a"), ["29500"]), ports.of(("ns", "b"), ["29500"])
    assert one["29500"] != other["29500"]
    assert ports.of(("ns", "a"), ["29500"]) == one


def test_hosts_name_every_pod_short_and_in_full() -> None:
    text = hosts_file([PodName("ns", "j-node-0-0", "j", "127.64.0.1")], {}, "127.0.0.1 localhost\n")
    line = next(line for line in text.splitlines() if line.startswith("127.64"))
    assert line.split() == [
        "127.64.0.1",
        "j-node-0-0.j.ns.svc.cluster.local",
        "j-node-0-0.j.ns.svc",
        "j-node-0-0.j",
        "j-node-0-0",
    ]
    assert text.endswith("127.0.0.1 localhost\n")


SERVICES = {"op.sys.svc": "127.0.0.1", "op.sys.svc.cluster.local": "127.0.0.1"}


def test_hosts_name_the_clusters_services_before_the_machines_own() -> None:
    lines = hosts_file([], SERVICES, "10.0.0.1\top.sys.svc\n").splitlines()
    assert lines[1:] == ["127.0.0.1\top.sys.svc", "127.0.0.1\top.sys.svc.cluster.local", "10.0.0.1\top.sys.svc"]


def test_aliases_are_read_from_the_pods_spec() -> None:
    aliases: list[Json] = [{"ip": "127.0.0.1", "hostnames": ["a", "b.c"]}, {"ip": "10.0.0.1", "hostnames": None}]
    assert host_aliases({"spec": {"hostAliases": aliases}}) == {"a": "127.0.0.1", "b.c": "127.0.0.1"}
    assert host_aliases({"spec": {"hostAliases": None}}) == {}


@pytest.mark.parametrize(
    ("value", "t0"),
    [
        ("https://op.sys.svc:10443/x", "https://127.0.0.1:10443/x"),
        ("https://op.sys.svc.cluster.local:10443/x", "https://127.0.0.1:10443/x"),
        ("https://stop.sys.svc:1", "https://stop.sys.svc:1"),
        ("https://op.sys.svc.example.com", "https://op.sys.svc.example.com"),
    ],
)
def test_services_become_addresses_only_where_pods_have_no_hosts_file(value: str, t0: str) -> None:
    for rewriter in (Rewriter("ns", "j", services=SERVICES), Rewriter("ns", "", services=SERVICES)):
        assert rewriter.variable("URL", value, {}, to_loopback=True) == t0
        assert rewriter.variable("URL", value, {}, to_loopback=False) == value


@pytest.mark.parametrize(
    ("name", "value", "t1", "t0"),
    [
        ("MEET_PORT", "29500", "20123", "20123"),
        ("MEET_PORT", "29501", "29501", "29501"),
        ("MEET_PORT", "9" * 5000, "9" * 5000, "9" * 5000),
        ("MEET_AT", "0.0.0.0:29500", "0.0.0.0:20123", "0.0.0.0:20123"),
        ("MEET_AT", "tcp://*:29500", "tcp://*:20123", "tcp://*:20123"),
        ("MEET_AT", "j-node-0-0.j:29500", "j-node-0-0.j:20123", "127.0.0.1:20123"),
        ("ADDRESS", "j-node-0-0.j", "j-node-0-0.j", "127.0.0.1"),
        ("ANY", "j-node-0-0.j:29500", "j-node-0-0.j:20123", "127.0.0.1:20123"),
        ("URL", "tcp://j-node-0-0.j.ns.svc:29500/x", "tcp://j-node-0-0.j.ns.svc:20123/x", "tcp://127.0.0.1:20123/x"),
        ("OTHER", "example.com:29500", "example.com:29500", "example.com:29500"),
        ("BATCH", "29500", "29500", "29500"),
        ("FILE", "data.j.txt", "data.j.txt", "data.j.txt"),
        ("HOSTS", "a-0.j,a-1.j", "a-0.j,a-1.j", "127.0.0.1,127.0.0.1"),
    ],
)
def test_only_the_jobs_own_names_and_ports_change(name: str, value: str, t1: str, t0: str) -> None:
    rewriter = Rewriter("ns", "j", DECLARED)
    assert rewriter.variable(name, value, PORTS, to_loopback=False) == t1
    assert rewriter.variable(name, value, PORTS, to_loopback=True) == t0


def test_ports_are_found_where_the_pod_declares_them_and_behind_the_names_of_its_job() -> None:
    rewriter = Rewriter("ns", "j", DECLARED)
    assert rewriter.ports({"MEET_PORT": "29500", "MEET_AT": "*:29600"}, []) == {"29500", "29600"}
    assert rewriter.ports({}, ["train", "--endpoint=j-node-0-0.j:29400"]) == {"29400"}
    assert rewriter.ports({}, ["train", "--meet-port", "1234"]) == {"1234"}
    assert rewriter.ports({}, ["sh", "-c", "train -p=1234"]) == {"1234"}
    assert rewriter.ports({"LEARNING_RATE": "1", "MEET_PORT": "none"}, ["sh", "-c", "echo a:29500 --keep-p 1"]) == set()


def test_each_pod_of_a_declared_variable_gets_a_port_of_its_own() -> None:
    rewriter = Rewriter("ns", "j", Declarations(peer_variables=frozenset({"PEERS"})))
    env = {"PEERS": "j-ps-0-0.j:2222, j-ps-0-1.j.ns.svc:2222, example.com:2222", "OTHER": "j-ps-0-0.j:2222"}
    assert rewriter.ports(env, []) == {"j-ps-0-0:2222", "j-ps-0-1:2222", "2222"}
    ports = {"j-ps-0-0:2222": 20001, "j-ps-0-1:2222": 20002, "2222": 20003}
    here = {name: rewriter.variable(name, value, ports, to_loopback=False) for name, value in env.items()}
    assert here["PEERS"] == "j-ps-0-0.j:20001, j-ps-0-1.j.ns.svc:20002, example.com:2222"
    assert here["OTHER"] == "j-ps-0-0.j:20003", "one that is not declared names the job's port"
    plain = rewriter.variable("PEERS", env["PEERS"], ports, to_loopback=True)
    assert plain == "127.0.0.1:20001, 127.0.0.1:20002, example.com:2222"
    assert [port_here(ports, host, 2222) for host in ("j-ps-0-1", "j-chief-0-0")] == [20002, 20003]
    assert port_here({}, "j-ps-0-1", 2222) == 2222


def test_a_pod_that_declares_nothing_keeps_its_numbers() -> None:
    rewriter = Rewriter("ns", "j")
    assert rewriter.ports({"PET_MASTER_PORT": "29500"}, ["torchrun", "--master_port", "29500"]) == set()
    assert rewriter.arguments(["--meet-port", "29500"], PORTS, to_loopback=True) == ["--meet-port", "29500"]


def test_arguments_change_in_every_spelling() -> None:
    argv = [
        "train",
        "--meet-port",
        "29500",
        "--endpoint=j-node-0-0.j:29500",
        "sh -c 'train --meet-port=29500'",
        "29500",
    ]
    assert Rewriter("ns", "j", DECLARED).arguments(argv, PORTS, to_loopback=False) == [
        "train",
        "--meet-port",
        "20123",
        "--endpoint=j-node-0-0.j:20123",
        "sh -c 'train --meet-port=20123'",
        "29500",
    ]


def test_a_pod_without_a_service_has_no_names_to_change() -> None:
    assert Rewriter("ns", "").text("a.b:29500", PORTS, to_loopback=True) == "a.b:29500"
