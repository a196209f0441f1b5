"""What can be said of manifests and definitions without a cluster: `steersman validate` and `steersman crd lint`."""
