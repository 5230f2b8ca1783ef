# SPDX-License-Identifier: Apache-2.0
"""libkshim-query.so through the package's own binding, with a library of this build."""
import sys

import e2e

sys.path.insert(0, str(e2e.SOURCE / "python"))
sys.modules.setdefault("kshim._version", type(sys)("kshim._version")).version = "0"
from kshim import _covers, _places  # noqa: E402

covers = _covers.covers


def use(library):
    _places.query_library = lambda: str(library)
