"""Admission policies: expressions that judge or change what is written."""
