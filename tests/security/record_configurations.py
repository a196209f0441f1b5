"""Records what is wrong with configuration files: `python -m tests.security.record_configurations KUBE_APISERVER`.

Kinds of files may be named behind it (default: all). KUBE_APISERVER is the program, which is started with each file. It
needs no etcd: it refuses the bad ones before it looks for one, and with the others it is stopped soon.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

HERE = Path(__file__).parent
FILES, RECORDED = HERE / "configurations.yaml", HERE / "configurations.json"
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1/"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
    "current-context": "c",
}
PREFIXES = (
    "invalid authentication configuration: ",
    'failed to load authentication configuration from file "{{dir}}/config": ',
)
_PATIENCE = 6.0


def prepare(directory: Path) -> None:
    (directory / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))


def placed(text: str, directory: Path) -> bytes:
    """A file's content, for a directory."""
    return text.replace("{{dir}}", str(directory)).encode()


def _flags(directory: Path) -> list[str]:
    key = directory / "sa.key"
    if not key.exists():
        made = rsa.generate_private_key(65537, 2048)
        key.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    values = {
        "etcd-servers": "http://127.0.0.1:1",
        "cert-dir": str(directory / "certs"),
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(key),
        "service-account-signing-key-file": str(key),
        "service-cluster-ip-range": "10.0.0.0/24",
        "secure-port": "22155",
        "bind-address": "127.0.0.1",
    }
    return [f"--{name}={value}" for name, value in values.items()]


def _error(output: str, directory: Path) -> str:
    """What klog tells of why the program has ended: quoted, or in lines of its own."""
    text = output[output.index("err=") + 4 :]
    if text.startswith('"'):
        said = json.loads(text.splitlines()[0])
    else:
        lines = text.splitlines()[1:]
        said = "\n".join(line.strip("\t").removeprefix(" \t") for line in lines[: lines.index(" >")])
    said = str(said).replace(str(directory), "{{dir}}")
    for prefix in PREFIXES:
        said = said.removeprefix(prefix)
    return said


def refusal(program: str, kind: str, text: str, directory: Path) -> str:
    """What the program says of a file; "" when it starts with it."""
    (directory / "config").write_bytes(placed(text, directory))
    flags = [*_flags(directory), f"--{kind}{'-provider' if kind == 'encryption' else ''}-config={directory / 'config'}"]
    if kind == "authentication":
        flags.append("--authorization-mode=RBAC")
    try:
        ended = subprocess.run([program, *flags], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return _error(ended.stderr, directory)


def main(program: str, *kinds: str) -> int:
    """Returns the exit status."""
    found = json.loads(RECORDED.read_text()) if kinds else {}
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        prepare(directory)
        for kind, files in yaml.safe_load(FILES.read_text()).items():
            if kinds and kind not in kinds:
                continue
            found[kind] = [refusal(program, kind, text, directory) for text in files]
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
