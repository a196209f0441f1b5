"""Admission webhooks: which are to be asked, in which version, and what their answers do."""
