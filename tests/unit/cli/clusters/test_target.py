"""Which cluster a command acts on."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainwright.cli.clusters.directory import ClusterDirectory, default_directory
from trainwright.cli.clusters.target import Target, choose
from trainwright.cli.failure import Failure

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: dev
clusters:
- {name: dev, cluster: {server: "https://dev.example:6443"}}
- {name: prod, cluster: {server: "https://prod.example:6443"}}
contexts:
- {name: dev, context: {cluster: dev}}
- {name: prod, context: {cluster: prod, namespace: team-a}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    return path


def chosen(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    local: bool = False,
    directory: Path | None = None,
    variable: str = "",
) -> Target:
    environment = {"KUBECONFIG": variable} if variable else {}
    return choose(kubeconfig=kubeconfig, context=context, local=local, directory=directory, environment=environment)


def test_nothing_given_is_the_local_cluster() -> None:
    target = chosen()
    assert target.where is None
    assert target.directory.path == default_directory()
    assert (target.namespace, target.flag()) == ("default", "")


def test_the_variable_names_a_cluster_and_needs_no_flag_in_messages(file: Path) -> None:
    target = chosen(variable=str(file))
    assert target.where == "context dev at https://dev.example:6443"
    assert target.flag() == ""
    assert target.directory.path == default_directory(), "its runs are recorded here"


def test_a_context_brings_its_namespace_and_stays_in_messages(file: Path) -> None:
    target = chosen(kubeconfig=file, context="prod")
    assert target.where == "context prod at https://prod.example:6443"
    assert target.namespace == "team-a"
    assert target.flag() == f" --kubeconfig {file} --context prod"
    assert chosen(context="prod", variable=str(file)).where == target.where


def test_local_and_a_directory_win_over_the_variable(file: Path, tmp_path: Path) -> None:
    local = chosen(local=True, variable=str(file))
    assert (local.where, local.flag()) == (None, " --local")
    named = chosen(directory=tmp_path / "mine", variable=str(file))
    assert (named.where, named.directory.path) == (None, tmp_path / "mine")
    assert named.flag() == f" --dir {tmp_path / 'mine'}"


def test_a_flag_wins_over_a_directory_which_then_holds_the_records(file: Path, tmp_path: Path) -> None:
    target = chosen(kubeconfig=file, directory=tmp_path / "mine")
    assert target.where == "context dev at https://dev.example:6443"
    assert target.directory.path == tmp_path / "mine"


def test_the_kubeconfig_of_a_local_cluster_is_that_local_cluster(tmp_path: Path) -> None:
    cluster = ClusterDirectory(tmp_path / "mine")
    cluster.create()
    cluster.kubeconfig.write_text(KUBECONFIG)
    cluster.lock_file.touch()
    target = chosen(variable=str(cluster.kubeconfig))
    assert (target.where, target.directory.path) == (None, cluster.path)


def test_a_changed_kubeconfig_is_read_again(file: Path) -> None:
    target = chosen(variable=str(file))
    first = target.kubeconfig()
    assert target.kubeconfig() is first, "credentials of one connection are shared while nothing changes"
    file.write_text(KUBECONFIG.replace("dev.example", "elsewhere.example"))
    assert target.kubeconfig().server == "https://elsewhere.example:6443"


def test_contradictions_and_missing_files_are_sentences(file: Path, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="exclude each other"):
        chosen(local=True, kubeconfig=file)
    with pytest.raises(Failure, match=r"nowhere does not exist"):
        _ = chosen(variable=str(tmp_path / "nowhere")).where
    with pytest.raises(Failure, match="contexts has no 'staging'; there are: dev, prod"):
        _ = chosen(kubeconfig=file, context="staging").where
