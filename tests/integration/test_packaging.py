"""What is built can be installed: complete, and nothing but `smithers` reaches site-packages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

import pytest

from support.screen import running

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def run(*line: str | Path, cwd: Path | None = None, **environ: str) -> str:
    done = subprocess.run(
        [str(part) for part in line],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, and the wheel that is built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def installed(
    request: pytest.FixtureRequest, built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A fresh environment with the distribution; what it depends on is lent by ours."""
    environment = tmp_path_factory.mktemp("env") / str(request.param)
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    lent = sysconfig.get_path("purelib")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index")
    # Lent first: building from the sdist needs hatchling.
    (site_packages(environment) / "lent.pth").write_text(f"{lent}\n")
    run(*pip, "--no-build-isolation", "--disable-pip-version-check", built[str(request.param)])
    return environment


def test_sql_files_are_inside(built: dict[str, Path]) -> None:
    wanted = {str(path.relative_to(ROOT / "sql")) for path in (ROOT / "sql").rglob("*.sql")}
    assert any("migrations" in path for path in wanted)
    wheel = set(zipfile.ZipFile(built["wheel"]).namelist())
    assert wanted <= wheel
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"sql/{path}" for path in wanted} <= names
    assert not any(name.startswith((".venv", ".git/", ".smithers")) for name in names)


def test_only_smithers_is_in_the_wheel(built: dict[str, Path]) -> None:
    names = zipfile.ZipFile(built["wheel"]).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"smithers"}
    assert "smithers/__init__.py" not in names
    packages = {name.split("/")[1] for name in names if name.startswith("smithers/")}
    assert packages == {path.parent.parent.name for path in ROOT.glob("*/smithers/*/")}
    assert all(f"smithers/{package}/py.typed" in names for package in packages)


def test_only_smithers_reaches_site_packages(installed: Path) -> None:
    found = {path.name for path in site_packages(installed).iterdir()} - {"lent.pth"}
    assert {name for name in found if not name.endswith(".dist-info")} == {"smithers"}


def test_the_installed_command_works(installed: Path, empty_database: str) -> None:
    command = installed / "bin" / "smithers"
    assert run(command, "--version", cwd=installed).startswith("smithers, version ")
    code = "import smithers.sql.schema as m; print(m.__file__)"
    assert run(installed / "bin" / "python", "-c", code, cwd=installed).startswith(str(installed))
    out = run(command, "migrate", cwd=installed, SMITHERS_DATABASE_URL=empty_database)
    assert "applied 0001" in out


def test_the_demo_of_a_wheel_in_an_empty_folder(
    request: pytest.FixtureRequest, installed: Path, tmp_path: Path
) -> None:
    """As with pipx or uvx: no checkout, no repository; a person at a terminal decides."""
    if request.node.callspec.params["installed"] == "sdist":
        pytest.skip("what the sdist installs is the same files")
    environ = {"PATH": f"{installed}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    folder = tmp_path / "empty"
    folder.mkdir()
    demo = [str(installed / "bin" / "smithers"), "demo"]
    with running(demo, environment=environ, folder=folder, width=160, height=200) as opened:
        opened.read_until("Enter approves", seconds=90)
        opened.type("\r")
        assert opened.finish(seconds=90) == 0, opened.screen.lines
    shown = opened.screen.lines
    assert re.fullmatch(r"killed 3 times · 14 steps · 0 repeated", shown[-1]), shown
    assert any(line.startswith("Smithers inspects a sample project") for line in shown)
    (run_id,) = {word for line in shown for word in re.findall(r"demo-[0-9a-f]{6}", line)}

    def smithers(*words: str) -> str:
        return run(demo[0], *words, cwd=folder, **environ)

    seen = json.loads(smithers("status", run_id, "--json"))
    steps = [n for n in seen["nodes"] if n["state"] == "finished" and n["kind"] != "loop"]
    assert (seen["status"], len(steps)) == ("finished", 14)
    events = json.loads(smithers("events", run_id, "--json"))
    finished = [(e["node_id"], e["iteration"]) for e in events if e["type"] == "attempt-finished"]
    assert len(finished) == len(set(finished)) == 13, "all but the approval are tasks"
    assert any(e["type"] == "attempt-abandoned" for e in events)
    decided = [e["payload"] for e in events if e["type"] == "approval-decided"]
    assert [each["by"] for each in decided] == ["smithers demo"]
    assert json.loads(smithers("verify", "--json")) == []
    report = folder / ".smithers" / "demo" / run_id / "report.md"
    assert "A planted defect was repaired in 2 passes." in report.read_text()
    assert [path.name for path in folder.iterdir()] == [".smithers"]
    smithers("down", "--purge")
    assert list(folder.iterdir()) == []
    assert not any(run_id in str(path) for path in Path(tempfile.gettempdir()).iterdir())


def test_the_roots_themselves_cannot_be_imported() -> None:
    """`worker` or `sql` must never be ours: others have packages of those names."""
    code = (
        "from importlib.util import find_spec; import sys;"
        "sys.exit(any(find_spec(n) for n in ('worker', 'scheduler', 'sql', 'process', 'cli')))"
    )
    run(sys.executable, "-c", code, cwd=Path("/"))
