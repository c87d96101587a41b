"""Gaps and bounds: arrays in, arrays out."""
