"""The finder of run folders: levels, order, and folders that are none."""

from pathlib import Path

import karat
from karat.results.run_folders import RUN_FILE, find_run_folders, is_run_folder

SOURCE = Path(karat.__file__).parent


def test_run_folders_are_found_by_level_and_name(tmp_path):
    for name in ("b", "a", "deep/c", "deep/d/e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / RUN_FILE).write_text("{}")
    (tmp_path / "other").mkdir()
    names = [f.relative_to(tmp_path).as_posix() for f in find_run_folders(tmp_path)]
    assert names == ["a", "b"]
    several = find_run_folders(tmp_path, levels=(2, 0, 3))
    assert [f.relative_to(tmp_path).as_posix() for f in several] == ["deep/c", "deep/d/e"]
    assert list(find_run_folders(tmp_path / "a", levels=(0, 1))) == [tmp_path / "a"]
    assert is_run_folder(tmp_path / "a") and not is_run_folder(tmp_path)
    assert not list(find_run_folders(tmp_path / "missing", levels=(0, 1, 2)))
    assert not list(find_run_folders(tmp_path / "a" / RUN_FILE, levels=(0, 1, 2)))


def test_only_the_finder_names_the_file():
    """Elsewhere it stands in texts only, not in paths and patterns."""
    finder = SOURCE / "results" / "run_folders.py"
    others = [path for path in SOURCE.rglob("*.py") if path != finder]
    assert not [path for path in others if f'{RUN_FILE}"' in path.read_text("utf-8")]
