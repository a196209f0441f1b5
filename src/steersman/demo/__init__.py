"""`steersman demo`: the main job, end to end, where one can watch it."""
