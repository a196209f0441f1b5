"""Webhooks as the server calls them: where they are, how a review gets there, what went wrong."""
