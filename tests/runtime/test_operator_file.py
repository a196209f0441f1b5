"""Where `steersman run` and `steersman generate` find an operator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import steersman as st

STEERSMAN = Path(sys.executable).with_name("steersman")
MANAGER = "import steersman as st\nmanager = st.Manager(name='found')\n"


def steersman(directory: Path, *arguments: str) -> tuple[int, str]:
    """A command's exit status, and its last line."""
    done = subprocess.run(
        [STEERSMAN, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, ((done.stdout + done.stderr).strip().splitlines() or [""])[-1]


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("nothing.py", "nothing.py is not a file"),
        ("some/where", "some/where is not a file"),
        ("nothing", "nothing is neither a file nor a module"),
        ("shop.nothing", "shop.nothing is neither a file nor a module"),
        ("notes.txt", "notes.txt is not a Python file: its name must end in .py"),
        ("empty.py", "empty has no Managers: make one: manager = steersman.Manager(...)"),
        ("two.py", "two has 2 Managers: name one of a, b"),
        ("two.py:c", "two has no Manager called 'c'"),
        ("broken.py", "No module named 'absent'"),
    ],
)
def test_what_is_no_operator(tmp_path: Path, operator: str, said: str) -> None:
    (tmp_path / "notes.txt").write_text("no code")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "two.py").write_text("import steersman as st\na = st.Manager()\nb = st.Manager()\n")
    (tmp_path / "broken.py").write_text("import absent\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    status, last = steersman(tmp_path, "run", operator)
    assert status == 1
    assert last.endswith(said)


@pytest.mark.parametrize(
    "operator", ["operator.py", "operator.py:manager", "shop/operator.py", "shop.operator", "shop/sub/deep.py"]
)
def test_an_operator_is_a_file_a_module_or_both(tmp_path: Path, operator: str) -> None:
    """A kubeconfig that is not there is the first thing that is wrong: the Manager was found."""
    (tmp_path / "shop" / "sub").mkdir(parents=True)
    (tmp_path / "beside.py").write_text("NAME = 'found'\n")
    (tmp_path / "operator.py").write_text(f"from beside import NAME\n{MANAGER}")
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "sub" / "__init__.py").write_text("")
    (tmp_path / "shop" / "names.py").write_text("NAME = 'found'\n")
    (tmp_path / "shop" / "operator.py").write_text(f"from .names import NAME\n{MANAGER}")
    (tmp_path / "shop" / "sub" / "deep.py").write_text(f"from shop.names import NAME\n{MANAGER}")
    status, last = steersman(tmp_path, "run", operator, "--kubeconfig", "absent.yaml")
    assert status == 1
    assert "absent.yaml" in last


def test_webhooks_may_be_placed_elsewhere() -> None:
    manager = st.Manager(webhooks=st.Webhooks("127.0.0.1:9443", register=False))
    manager.configure(webhooks=":9444")
    manager.configure(webhook_service="here/hooks")
    options = manager.webhooks.options
    assert (options.address, options.service, options.register) == (":9444", ("here", "hooks"), False)
    manager.configure(webhook_service="there/hooks")
    assert manager.webhooks.options.service == ("there", "hooks")
    for wrong in ("hooks", "/hooks", "here/", "a/b/c"):
        with pytest.raises(ValueError, match="names no Service"):
            manager.configure(webhook_service=wrong)


def test_webhooks_may_be_left_out() -> None:
    manager = st.Manager()
    manager.conversion("apps.example.com", {})
    manager.without_webhooks()
    assert not manager.webhooks.converted
