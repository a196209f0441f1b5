"""Pages talk to kubectl, too."""

from ..kubectl.conftest import kubectl_binary as kubectl_binary
