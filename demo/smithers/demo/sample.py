"""The project that the demo inspects where a person has no repository yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SAMPLE: Final[Mapping[str, str]] = {
    "README.md": "# Tea timer\n\nTells when the tea is ready.\n",
    "tea/__init__.py": '"""A tea timer."""\n',
    "tea/kinds.py": (
        '"""How long each kind of tea takes, in seconds."""\n\n'
        'SECONDS = {"green": 120, "black": 240, "herbal": 480}\n'
    ),
    "tea/timer.py": (
        '"""Wait until a tea is ready."""\n\nimport time\n\nfrom tea.kinds import SECONDS\n\n\n'
        "def wait(kind: str) -> int:\n    # TODO: stir\n    time.sleep(SECONDS[kind])\n"
        "    return SECONDS[kind]\n"
    ),
    "tea/words.py": (
        '"""What is said."""\n\n\ndef ready(kind: str) -> str:\n'
        '    return f"Your {kind} tea is ready."\n'
    ),
    "tea/main.py": (
        '"""The command."""\n\nimport sys\n\nfrom tea.timer import wait\n'
        "from tea.words import ready\n\n\ndef main() -> None:\n"
        "    wait(sys.argv[1])\n    print(ready(sys.argv[1]))\n"
    ),
    "tests/test_words.py": (
        '"""What is said is right."""\n\nfrom tea.words import ready\n\n\n'
        'def test_ready() -> None:\n    assert ready("green") == "Your green tea is ready."\n'
    ),
    "tests/test_kinds.py": (
        '"""Every tea takes a while."""\n\nfrom tea.kinds import SECONDS\n\n\n'
        "def test_kinds() -> None:\n    assert min(SECONDS.values()) > 0\n"
    ),
    "brew.sh": '#!/bin/sh\nexec python3 -m tea.main "$@"\n',
    "menu.json": '{"teas": ["green", "black", "herbal"]}\n',
}
