"""Reviews: questions about identity and permission. They are answered where they are created, and stored nowhere."""
