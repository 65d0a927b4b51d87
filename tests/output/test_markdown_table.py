"""Tables as Markdown."""

from karat.output.markdown_table import markdown_table


def test_a_table_as_markdown(small_table):
    assert markdown_table(small_table).splitlines() == [
        r"Two \| models",
        "",
        "| model               |   score |",
        "| ------------------- | ------: |",
        "| a_b &amp; &lt;c&gt; | **0.5** |",
        "| plain               |       – |",
        "",
        r"50 % of \*all\*.",
    ]
