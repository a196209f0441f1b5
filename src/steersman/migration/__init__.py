"""Storage migration: `steersman migrate` rewrites objects that are stored in an old version of their kind."""
