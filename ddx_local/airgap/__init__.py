"""Across the air gap: the bundle that carries everything, and the doctor who says what a machine lacks."""
