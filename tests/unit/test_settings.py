"""Settings: who wins, what is derived, what is refused and in which words."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from smithers.process.settings import Settings, SettingsError, load_settings


def load(cwd: Path, flags: dict[str, object] | None = None, **environ: str) -> Settings:
    return load_settings(flags, environ=environ, cwd=cwd)


def test_defaults_follow_from_the_lease(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.lease_seconds == 30
    assert settings.heartbeat_seconds == 5
    assert settings.supervisor_poll_seconds == 3
    assert settings.suspend_seconds == 22
    assert settings.database_url is None
    short = load(tmp_path, SMITHERS_LEASE_SECONDS="1.5")
    assert short.heartbeat_seconds == 0.25
    assert short.suspend_seconds == pytest.approx(1.1)
    assert str(short.origins["heartbeat_seconds"]) == "lease_seconds / 6"


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    (tmp_path / "smithers.toml").write_text(
        "lease_seconds = 10\npoison_attempts = 7\nsettle_ms = 1\n"
    )
    settings = load(
        tmp_path,
        {"settle_ms": 3, "log_level": None},
        SMITHERS_LEASE_SECONDS="20",
        SMITHERS_SETTLE_MS="2",
    )
    assert (settings.poison_attempts, settings.lease_seconds, settings.settle_ms) == (7, 20, 3)
    kinds = {name: origin.kind for name, origin in settings.origins.items()}
    assert kinds["poison_attempts"] == "file"
    assert kinds["lease_seconds"] == "environment"
    assert kinds["settle_ms"] == "flag"
    assert kinds["log_level"] == "default"
    assert str(settings.origins["lease_seconds"]) == "SMITHERS_LEASE_SECONDS"
    assert str(tmp_path / "smithers.toml") in str(settings.origins["poison_attempts"])


def test_pyproject_counts_only_with_its_table(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.smithers]\nresume_limit = 9\n")
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load(inner).resume_limit == 9
    (inner / "smithers.toml").write_text("resume_limit = 4\n")
    assert load(inner).resume_limit == 4


def test_paths_are_relative_to_what_named_them(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "smithers.toml").write_text("home = 'state'\n")
    assert load(inner).home == tmp_path / "state"
    assert load(inner, SMITHERS_HOME="state").home == inner / "state"


def test_home_is_the_nearest_folder_upward_or_is_made_here(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert load(inner).home == inner / ".smithers"
    (tmp_path / ".smithers").mkdir()
    assert load(inner).home == tmp_path / ".smithers"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a folder of another user")
def test_home_of_another_user_is_passed_over(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / ".smithers").mkdir()
    os.chown(tmp_path / ".smithers", 65534, 65534)
    assert load(inner).home == inner / ".smithers"


def test_empty_text_is_not_set(tmp_path: Path) -> None:
    assert load(tmp_path, SMITHERS_DATABASE_URL="").database_url is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LEASE_SECONDS", "0"),
        ("LEASE_SECONDS", "-3"),
        ("LEASE_SECONDS", "nan"),
        ("LEASE_SECONDS", "soon"),
        ("HEARTBEAT_SECONDS", "0"),
        ("SUPERVISOR_POLL_SECONDS", "inf"),
        ("SETTLE_MS", "1.5"),
        ("POISON_ATTEMPTS", "0"),
        ("RESUME_LIMIT", "three"),
        ("LOG_LEVEL", "loud"),
        ("LOG_LIMIT_MB", "0"),
        ("RENDER_TIMEOUT_SECONDS", "0"),
        ("DATABASE_URL", "mysql://h/x"),
    ],
)
def test_nonsense_is_refused_by_name_and_origin(tmp_path: Path, variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ={f"SMITHERS_{variable}": value}, cwd=tmp_path)
    error = caught.value
    assert error.code == "SETTING_INVALID"
    assert error.details["setting"] == variable.lower()
    assert f"SMITHERS_{variable}" in error.message
    assert error.hint


def test_types_in_a_file_are_checked(tmp_path: Path) -> None:
    (tmp_path / "smithers.toml").write_text("poison_attempts = true\n")
    with pytest.raises(SettingsError, match="must be a number"):
        load(tmp_path)


def test_a_heartbeat_over_a_third_of_the_lease_is_refused(tmp_path: Path) -> None:
    assert load(tmp_path, SMITHERS_HEARTBEAT_SECONDS="10").heartbeat_seconds == 10
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, SMITHERS_HEARTBEAT_SECONDS="10.1")
    assert caught.value.details["setting"] == "heartbeat_seconds"
    assert "10" in (caught.value.hint or "")


def test_unknown_names_are_refused_where_they_are_surely_mistakes(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no setting") as caught:
        load(tmp_path, SMITHERS_LEASE_SECOND="3")
    assert caught.value.hint == "did you mean SMITHERS_LEASE_SECONDS?"
    with pytest.raises(SettingsError):
        load(tmp_path, {"leese": 3})
    load(tmp_path, SMITHERS_SERVICE_HOST="10.0.0.1", SMITHERS_PORT="tcp://10.0.0.1:80")
    (tmp_path / "smithers.toml").write_text("color = 'red'\n")
    with pytest.raises(SettingsError, match="color") as caught:
        load(tmp_path)
    assert "smithers.toml" in caught.value.message


def test_suspend_is_derived_and_not_settable(tmp_path: Path) -> None:
    (tmp_path / "smithers.toml").write_text("suspend_seconds = 3\n")
    with pytest.raises(SettingsError) as caught:
        load(tmp_path)
    assert caught.value.code == "SETTING_UNKNOWN"


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "smithers.toml").write_text("lease_seconds = [\n")
    with pytest.raises(SettingsError) as caught:
        load(tmp_path)
    assert caught.value.code == "SETTINGS_FILE_INVALID"
    assert str(tmp_path / "smithers.toml") in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:se%40cret@h/x",
        "postgresql://u:se@cret@h/x",
        "postgresql://h/x?user=u&password=secret",
        "host=h password=secret dbname=x",
        "host=h password = 'se cret' dbname=x",
    ],
)
def test_passwords_are_never_shown(tmp_path: Path, url: str) -> None:
    settings = load(tmp_path, SMITHERS_DATABASE_URL=url)
    assert settings.database_url == url
    assert "cret" not in repr(settings)
    assert "***" in repr(settings)


def test_a_refused_url_is_shown_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, SMITHERS_DATABASE_URL="mysql://u:secret@h/x")
    assert "secret" not in caught.value.message + str(caught.value.details)


def test_settings_are_frozen_and_reach_a_child(tmp_path: Path) -> None:
    url = "postgresql://u:p@h/x"
    settings = load(tmp_path, {"lease_seconds": 3}, SMITHERS_DATABASE_URL=url)
    with pytest.raises(AttributeError):
        settings.lease_seconds = 4  # type: ignore[misc]
    environ = settings.environment()
    assert environ == {
        "SMITHERS_HOME": str(tmp_path / ".smithers"),
        "SMITHERS_LEASE_SECONDS": "3.0",
        "SMITHERS_DATABASE_URL": url,
    }
    assert load_settings(environ=environ, cwd=Path("/")) == settings
    assert "SMITHERS_DATABASE_URL" not in settings.environment(with_database_url=False)


def test_errors_survive_pickling(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, SMITHERS_LEASE_SECONDS="0")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.code, copy.details) == (
        SettingsError,
        caught.value.code,
        caught.value.details,
    )
