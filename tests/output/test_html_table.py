"""Tables as HTML."""

from karat.output.html_table import html_table


def test_a_table_as_html(small_table):
    html = html_table(small_table)
    assert "<bdi>a_b &amp; &lt;c&gt;</bdi>" in html and "<b>0.5</b>" in html
    assert "<i>–</i>" in html and "Two | models</caption>" in html
    assert "style=" in html and "class=" not in html


def test_the_page_has_a_style_sheet(small_table):
    html = html_table(small_table, classes=True)
    assert "style=" not in html and 'class="number"' in html
