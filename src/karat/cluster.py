"""Runs on several machines, at the place where users import them from."""

from karat.ext.cluster.gather import Gathering as Gathering
from karat.ext.cluster.gather import gather as gather
from karat.ext.cluster.shards import Shard as Shard
