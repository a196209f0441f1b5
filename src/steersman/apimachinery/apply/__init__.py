"""Field ownership and server-side apply (KEP-555).

`typed` says how a schema's maps and lists are owned, `fieldset` holds sets of fields, `compare` finds what a write
changed, `managers` records it (`track_update`), `server_side` applies configurations, `scale` follows ownership
through the scale subresource.
"""
