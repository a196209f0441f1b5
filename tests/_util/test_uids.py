from __future__ import annotations

import uuid

from steersman._util import uids


def test_they_are_random_uuids() -> None:
    made = [uids.new() for _ in range(200)]
    assert len(set(made)) == 200
    for text in made:
        read = uuid.UUID(text)
        assert (str(read), read.version, read.variant) == (text, 4, uuid.RFC_4122)
