"""Engines: where jobs run other than on this machine."""
