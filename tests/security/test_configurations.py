"""Configuration files are refused with kube-apiserver's words, and accepted where it accepts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.security.record_configurations import FILES, RECORDED, placed, prepare

from steersman.apiserver.authn import configuration as authentication
from steersman.apiserver.authz import configuration as authorization
from steersman.apiserver.config_files import ConfigFileError
from steersman.apiserver.encryption import configuration as encryption

READERS = {
    "authentication": lambda raw, path: authentication.read_configuration(raw),
    "authorization": lambda raw, path: authorization.read_configuration(raw),
    "encryption": encryption.read_configuration,
}


@pytest.mark.parametrize("kind", READERS)
def test_files_are_refused_as_recorded(kind: str, tmp_path: Path) -> None:
    prepare(tmp_path)
    files, recorded = yaml.safe_load(FILES.read_text())[kind], json.loads(RECORDED.read_text())[kind]
    assert len(files) == len(recorded)
    different = []
    for text, expected in zip(files, recorded, strict=True):
        try:
            READERS[kind](placed(text, tmp_path), str(tmp_path / "config"))
            said = ""
        except ConfigFileError as error:
            said = str(error).replace(str(tmp_path), "{{dir}}")
        if _without_indents(said) != _without_indents(expected):
            different.append(f"{text}    {said}\n    recorded: {expected}")
    assert not different, "\n".join(different)


def _without_indents(text: str) -> str:
    """Of a text in several lines the log does not tell how they begin and end."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
