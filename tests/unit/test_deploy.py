"""The Kubernetes base names commands and options that exist, and renders where kubectl is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from smithers.cli.main import smithers

BASE = Path(__file__).parents[2] / "deploy" / "k8s" / "base"


def arguments(name: str) -> list[str]:
    """The words that a component's container is started with."""
    (words,) = re.findall(r"args: \[(.*)\]", (BASE / f"{name}.yaml").read_text())
    return [word.strip().strip('"') for word in words.split(",")]


@pytest.mark.parametrize("name", ["scheduler", "worker", "supervisor", "migrate"])
def test_containers_are_started_with_options_that_exist(name: str) -> None:
    command, *words = arguments(name)
    found = smithers.get_command(click.Context(smithers), command)
    assert found is not None
    found.make_context(command, words)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl isn't installed")
def test_the_base_renders() -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(BASE)], capture_output=True, text=True, check=True, timeout=60
    )
    kinds = re.findall(r"^kind: (\w+)", done.stdout, re.MULTILINE)
    assert sorted(kinds) == [
        "ConfigMap",
        "Deployment",
        "Deployment",
        "Deployment",
        "Job",
        "Namespace",
    ]
