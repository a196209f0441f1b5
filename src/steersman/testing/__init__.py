"""A real control plane for tests, in this process: `with steersman.testing.control_plane() as plane: ...`."""

from steersman.testing.thread import ThreadedControlPlane, control_plane

__all__ = ["ThreadedControlPlane", "control_plane"]
