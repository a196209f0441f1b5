"""Filters wrap the endpoints: each sees a request on its way in, and its answer or its error on the way out."""
