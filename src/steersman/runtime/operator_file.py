"""Finding an operator's module, and the Manager in it, by what a command line says."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.runtime.manager import Manager


class OperatorFileError(Exception):
    """What is wrong with the file or module that was named."""


def load_module(name: str) -> ModuleType:
    """A module by the path of its file (`operator.py`) or by its name (`demo.operator`).

    A file of a package is imported as that package's module. What lies beside another file can be imported by it, and
    what lies in the working directory by a module. Raises OperatorFileError where there is no such thing, or it is no
    Python; other errors of the module itself go through.
    """
    try:
        return _load(name)
    except SyntaxError as error:
        where = f"{error.filename or name}:{error.lineno or 1}"
        line = f": {error.text.strip()}" if error.text and error.text.strip() else ""
        raise OperatorFileError(f"{where}: {error.msg}{line}") from None


def _load(name: str) -> ModuleType:
    path = Path(name)
    if path.is_file():
        return _from_file(path)
    if path.suffix == ".py" or os.sep in name or not name:
        raise OperatorFileError(f"{name or repr(name)} is not a file")
    sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise OperatorFileError(f"{name} is neither a file nor a module") from None
    except (TypeError, ValueError):
        raise OperatorFileError(f"{name} is neither a file nor a module") from None


def load_manager(text: str) -> tuple[ModuleType, Manager]:
    """The module of `FILE_OR_MODULE[:NAME]`, and its Manager, or the one of that name. Raises OperatorFileError."""
    where, _, name = text.partition(":")
    module = load_module(where)
    return module, manager_in(module, name)


def manager_in(module: ModuleType, name: str = "") -> Manager:
    """The module's Manager; `name` says which, if there are several. Raises OperatorFileError."""
    from steersman.runtime.manager import Manager

    found = {key: value for key, value in vars(module).items() if isinstance(value, Manager)}
    if name:
        if name not in found:
            raise OperatorFileError(f"{module.__name__} has no Manager called {name!r}")
        return found[name]
    managers = list({id(manager): manager for manager in found.values()}.values())
    if len(managers) != 1:
        names = ", ".join(sorted(found))
        hint = f"name one of {names}" if managers else "make one: manager = steersman.Manager(...)"
        raise OperatorFileError(f"{module.__name__} has {len(managers) or 'no'} Managers: {hint}")
    return managers[0]


def _from_file(path: Path) -> ModuleType:
    if path.suffix != ".py":
        raise OperatorFileError(f"{path} is not a Python file: its name must end in .py")
    directory = path.resolve().parent
    if (directory / "__init__.py").is_file():
        return _of_package(path.resolve())
    known = sys.modules.get(path.stem)
    if known is not None and known.__file__ and Path(known.__file__).resolve() == path.resolve():
        return known  # another file has imported it
    # operator.py is a good name for an operator, and the name of a module of Python's.
    name = path.stem if path.stem not in sys.modules and path.stem not in sys.stdlib_module_names else "steersman_main"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # What lies beside it can be imported, and pydantic finds the module of its classes.
    sys.path.append(str(directory))
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _of_package(path: Path) -> ModuleType:
    names, directory = [] if path.stem == "__init__" else [path.stem], path.parent
    while (directory / "__init__.py").is_file():
        names.insert(0, directory.name)
        directory = directory.parent
    sys.path.append(str(directory))
    module = importlib.import_module(".".join(names))
    if not module.__file__ or Path(module.__file__).resolve() != path:
        raise OperatorFileError(f"{path} is not {module.__name__}: that is {module.__file__}")
    return module
