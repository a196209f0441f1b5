"""Options of commands that reach a cluster as kubectl does."""

from __future__ import annotations

import argparse

ENVIRONMENT = {
    "KUBECONFIG": "kubeconfig files, merged, when --kubeconfig is not given; several are separated as in PATH",
    "KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT": "where the API server is, in a Pod",
    "HTTPS_PROXY, HTTP_PROXY, NO_PROXY": "a proxy to go through, in capitals or small letters",
}
FILES = {
    "~/.kube/config": "the kubeconfig when none is named and this is no Pod",
    "/var/run/secrets/kubernetes.io/serviceaccount/": "the token and authorities of a Pod's service account",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add --kubeconfig and --context."""
    add = parser.add_argument_group("how to reach the cluster").add_argument
    add("--kubeconfig", metavar="FILE", help="a kubeconfig (default: found as kubectl finds it, or the Pod's)")
    add("--context", metavar="NAME", help="the context of the kubeconfig to use (default: its current one)")
