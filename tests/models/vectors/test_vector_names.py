"""Names as they stand in vector files."""

import numpy as np
import pandas as pd

from karat.models.vector_files import VectorFile


def test_angle_brackets_are_ignored_in_file_and_data(tmp_path):
    path = tmp_path / "tags.tsv"
    path.write_text("<script>\t1\t2\n<http://a.b/c d>\t3\t4\n")
    ids = ["<script>", "http://a.b/c d", "<http://a.b/c d>", "other"]
    got = VectorFile(str(path)).transform(pd.Series(ids, index=ids))
    assert got[:3].tolist() == [[1, 2], [3, 4], [3, 4]] and np.isnan(got[3]).all()
