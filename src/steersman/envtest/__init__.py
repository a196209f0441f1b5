"""Stand-ins for the programs that controller-runtime's envtest starts: kube-apiserver, etcd and kubectl.

Source: controller-runtime `pkg/envtest` and `pkg/internal/testing/{controlplane,process}`.
"""
