"""A drawing as an SVG picture, laid out and painted in plain Python."""

from raceway.graph.picture.layout import Layout, lay_out
from raceway.graph.picture.paint import picture

__all__ = ["Layout", "lay_out", "picture"]
