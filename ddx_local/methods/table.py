"""The table of methods: name -> flow, options, citation. Each row stands in the table of its family, as a literal."""

from collections.abc import Mapping

from ddx_local.methods.method import Method
from ddx_local.methods.table_alone import ALONE
from ddx_local.methods.table_debates import DEBATES
from ddx_local.methods.table_panels import PANELS

__all__ = ["METHODS", "Method"]

METHODS: Mapping[str, Method] = {**ALONE, **PANELS, **DEBATES}
"""In the order in which `methods` lists them."""
