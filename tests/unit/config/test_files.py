from __future__ import annotations

import os
from pathlib import Path

import pytest

from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.files import ConfigFiles
from kube_pyscheduler.config.load import load_config_file, load_policy_file

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
POLICY = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}]}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "config.yaml"
    made.write_text(HEADER)
    return made


@pytest.fixture
def files(path: Path) -> ConfigFiles:
    return ConfigFiles(lambda read: load_config_file(path, "mine", read))


def test_it_is_the_content_that_counts(files: ConfigFiles, path: Path) -> None:
    files.load()
    stat = path.stat()
    path.write_text(HEADER)
    os.utime(path, ns=(0, 0))
    assert not files.have_changed()
    path.write_text(HEADER.replace("\n", " \n", 1)[:-1])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert files.have_changed()
    assert files.have_changed()
    files.load()
    assert not files.have_changed()


def test_what_cannot_be_used_has_been_seen(files: ConfigFiles, path: Path) -> None:
    path.write_text("]")
    with pytest.raises(ConfigError, match="not YAML"):
        files.load()
    assert not files.have_changed()
    path.unlink()
    assert files.have_changed()
    with pytest.raises(ConfigError, match="cannot read"):
        files.load()
    assert not files.have_changed()
    path.write_bytes(b"\xff")
    assert files.have_changed()
    with pytest.raises(ConfigError, match="cannot read"):
        files.load()
    assert not files.have_changed()
    path.write_text(HEADER)
    assert files.have_changed()
    assert files.load().profiles[0].scheduler_name == "mine"


def test_a_policy_that_the_file_names_counts_too(files: ConfigFiles, path: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    source = f"algorithmSource: {{policy: {{file: {{path: {policy}}}}}}}\n"
    path.write_text(HEADER.replace("/v1", "/v1alpha1") + source)
    with pytest.raises(ConfigError, match=r"policy\.json: cannot read"):
        files.load()
    assert not files.have_changed()
    policy.write_text(POLICY)
    assert files.have_changed()
    before = files.load()
    policy.write_text(POLICY.replace("PodFitsResources", "HostName"))
    assert files.have_changed()
    assert files.load() != before
    path.write_text(HEADER)
    files.load()
    policy.unlink()
    assert not files.have_changed()


def test_a_policy_by_itself(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(POLICY)
    files = ConfigFiles(lambda read: load_policy_file(policy, "mine", read))
    files.load()
    policy.write_text(POLICY.replace("PodFitsResources", "HostName"))
    assert files.have_changed()


def test_a_pipe_is_read_once() -> None:
    reader, writer = os.pipe()
    os.write(writer, HEADER.encode())
    os.close(writer)
    path = Path(f"/dev/fd/{reader}")
    files = ConfigFiles(lambda read: load_config_file(path, "mine", read))
    assert files.load().profiles[0].scheduler_name == "mine"
    assert not files.have_changed()
    os.close(reader)
