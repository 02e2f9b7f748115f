"""Numbers of YAML as they are written. It loads nothing but YAML, for commands that are quick."""

from __future__ import annotations

import re

import yaml


def read_decimal(loader: type[yaml.SafeLoader]) -> None:
    """Let a loader take decimal numbers alone for numbers: YAML 1.1 reads 010 as 8 and 1:30 as 90."""
    integer, broken = (f"tag:yaml.org,2002:{kind}" for kind in ("int", "float"))
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (integer, broken)]
        for first, resolvers in loader.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver(integer, re.compile(r"[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
    number = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|[-+]?\.inf$|\.nan$", re.I)
    loader.add_implicit_resolver(broken, number, list("-+0123456789."))
