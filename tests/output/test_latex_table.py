"""Tables as LaTeX."""

from karat.output.latex_table import latex_table


def test_a_table_as_latex(small_table):
    lines = latex_table(small_table).splitlines()
    assert lines[1] == r"\begin{tabular}{lr}"
    assert r"a\_b \& \textless{}c\textgreater{} & \textbf{0.5} \\" in lines
    assert lines[-1] == r"{\footnotesize Two \textbar{} models 50 \% of {*}all{*}.\par}"
