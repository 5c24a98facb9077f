"""Code gets markup only where it has a colour: names, commas and spaces get none.

Their markup would be more than a fourth of a chapter's bytes.
"""

from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Text, Whitespace
from sphinx.highlighting import PygmentsBridge

PLAIN = {Name, Punctuation, Text, Whitespace}  # in the colour of text, in light and in dark


class OnlyWhatIsColoured(HtmlFormatter):
    """Pygments' HTML without classes that change nothing."""

    def _get_css_classes(self, ttype):
        return "" if ttype in PLAIN else super()._get_css_classes(ttype)


def setup(app):
    PygmentsBridge.html_formatter = OnlyWhatIsColoured
    return {"parallel_read_safe": True, "parallel_write_safe": True}
