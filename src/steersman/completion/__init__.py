"""Scripts that complete the command line in shells, made of its parsers.

They are static: a TAB starts no program.
"""
