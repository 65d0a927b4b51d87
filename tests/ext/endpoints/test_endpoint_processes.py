"""Which process holds something: names of processes, and locks that are files."""

import os

from karat.ext.endpoints.endpoint_processes import ProcessName, owner_file


def test_the_lock_of_a_dead_process_is_taken(tmp_path):
    dead = ProcessName(ProcessName.current().machine, 999999999, 1.0)
    lock = tmp_path / "lock"
    lock.write_text(str(vars(dead)).replace("'", '"'))
    with owner_file(lock):
        assert str(os.getpid()) in lock.read_text()
    assert list(tmp_path.iterdir()) == []
    assert dead.is_alive() is False and ProcessName.current().is_alive() is True
    assert ProcessName("another machine", 1, 1.0).is_alive() is None
