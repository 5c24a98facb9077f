"""Lists the uses of words that an editor of this course has often replaced, each with a better word.

    python tools/plain_words.py

The tool finds only faults that a machine can find; CONTRIBUTING.md lists the kinds of faults, each with an example.
"""

import re
import sys

from prose import AREAS, ROOT, files, passages

REPLACEMENTS = {  # a pattern, and what to write instead
    r"in silence": "silently",
    r"the other way (a?round)": "the reverse, or what comes first and what second",
    r"turn(s|ed|ing)?( \w+)? round": "reverse, or invert",
    r"another (\w+ )?than": "a different … from",
    r"in another (form|order|way)": "in a different …",
    r"also (when|where)": "even where",
    r"anew": "again",
    r"by (itself|themselves)": "alone, separately, or automatically",
    r"(is|are) asked for(?=[.,;:?!)]|$)|(?-i:Asked) for (is|are)": "the exercise asks for …",
    r"(stand(s|ing)?|stood)(?! (out|for|in for)\b)": "be, come, be stored, or line up with",
    r"tak(e|es|en|ing) (\w+ ){0,2}apart": "split, or unpack",
    r"hand(s|ed|ing)? (on|over)": "pass, or return",
    r"mend(s|ed|ing)?": "repair, or correct",
    r"one over (its|their)": "the reciprocal of",
    r"letter (after|by) letter": "character by character",
    r"content with": "accepts",
    r"go(es)? the way of": "be replaced",
    r"in (its|their) stead": "instead",
    r"whoever calls": "the caller",
    r"(at|for) (the|this) moment": "now",
    r"does so too|so as well": "so does …",
    r"behavior(?!:)|(neighb|fav)or(s|ed|ing)?|labeled": "-our, labelled",
    r"(general|initial|normal|optim|organ|random|real|recogn|serial|summar|vector|visual)is(e|ed|es|ing|ation)": "-ize",
}
RULES = [(re.compile(rf"(?i)(?<![\w-])({pattern})(?![\w-])"), better) for pattern, better in REPLACEMENTS.items()]
QUOTING_FILES = ("CONTRIBUTING.md", "tools/plain_words.py", "tools/sentences.py")  # files that name the words
QUOTING_FILES += ("tests/tools/test_plain_words.py", "tests/tools/test_sentences.py")
UNEDITED_AREA = ""  # an area whose prose has not been edited yet


def complaints(text):
    """Return pairs of a word and what to write instead."""
    prose = re.sub(r"``.+?``|`[^`]*`|\[[^]]*\]\([^)]*\)", "…", text)
    return [(match[0], better) for rule, better in RULES for match in rule.finditer(prose)]


def main():
    lines = [
        f'{path.relative_to(ROOT)}:{location}: "{word}": write {better}'
        for area in AREAS
        if area != UNEDITED_AREA
        for path in files(area)
        if str(path.relative_to(ROOT)) not in QUOTING_FILES
        for location, text in passages(path)
        for word, better in complaints(text)
    ]
    print("\n".join(lines) if lines else f"The prose has none of the {len(REPLACEMENTS)} kinds of words to replace.")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
