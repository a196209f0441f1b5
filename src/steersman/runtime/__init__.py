"""The operator runtime: informers, work queues, controllers, leader election. A client of any Kubernetes API."""
