"""Observe: plain numbers about tasks and vectors that checks read later; no score hangs on them."""
