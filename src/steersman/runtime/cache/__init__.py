"""The runtime's memory of the cluster: informers, and what reads from them."""
