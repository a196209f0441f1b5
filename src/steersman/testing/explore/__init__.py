"""Interleavings of an operator test, explored: many are run, and the shortest one that breaks the test is shown.

A run is a test on an event loop of its own (`loop`), whose time jumps and which has no sockets, with an API server on
the same loop. What a real run would leave to the network is decided by a schedule (`schedule`): in which order
requests, answers and watch events arrive (`network`, `transport`). Everything else is the same each time (`sealed`), so
that a schedule's text is all that it takes to run it again. `explorer` looks for a schedule that fails, `shrink` makes
it short, `story` tells it.

Only what may happen between an operator and a server is explored: an event loop runs its tasks in the order in which
they become ready, in a test as in production, and that order is kept.
"""
