"""Tests of data sources use an empty cache and none of the developer's settings."""

import pytest


@pytest.fixture(autouse=True)
def settings(download_settings):
    """Apply the settings to every test of this folder."""
