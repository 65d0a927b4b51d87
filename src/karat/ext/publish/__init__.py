"""Publishing: static sites, verification of submitted runs, experiment trackers, model cards."""
