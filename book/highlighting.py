"""Code is marked up where it has a colour of its own: a name, a comma or a space stands as it is.

Otherwise these alone are more than a fourth of a chapter's bytes.
"""

from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Text, Whitespace
from sphinx.highlighting import PygmentsBridge

PLAIN = {Name, Punctuation, Text, Whitespace}  # in the colour of text, by day and by night


class OnlyWhatIsColoured(HtmlFormatter):
    """As Pygments writes code, without classes that change nothing."""

    def _get_css_classes(self, ttype):
        return "" if ttype in PLAIN else super()._get_css_classes(ttype)


def setup(app):
    PygmentsBridge.html_formatter = OnlyWhatIsColoured
    return {"parallel_read_safe": True, "parallel_write_safe": True}
