"""Points everything at the repository's address, which stands in _config.yml: badges, install lines, links, citation.

python tools/repository.py                                           the address of _config.yml, wherever it is needed
python tools/repository.py https://github.com/you/your-fork [branch] another one, written into _config.yml too
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]


class Address(NamedTuple):
    """A repository on GitHub: ``owner/name``, and the branch that readers get."""

    slug: str
    branch: str

    @property
    def url(self):
        return f"https://github.com/{self.slug}"

    @property
    def site(self):
        """Where GitHub Pages shows the book."""
        owner, name = self.slug.split("/")
        host = f"{owner.lower()}.github.io"
        return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"

    @property
    def install(self):
        """What pip installs the package from."""
        return f"git+{self.url}@{self.branch}"

    def colab(self, path):
        """The link that opens a notebook of the repository in Colab."""
        return f"https://colab.research.google.com/github/{self.slug}/blob/{self.branch}/{path}"


SLUG = r"[\w.-]+/[\w.-]+"
# Where a file says which repository it belongs to: the places that may still name another one.
TELLTALES = (
    rf"colab\.research\.google\.com/github/({SLUG})/blob/(\S+?)/chapters/",
    rf"git\+https://github\.com/({SLUG}?)(?:\.git)?@([\w./-]+)",
    rf"^repository-code: [\"']?https://github\.com/({SLUG})()",
)


def address(root=ROOT):
    """Return the address that stands in ``_config.yml``."""
    repository = yaml.safe_load((root / "_config.yml").read_text("utf-8"))["repository"]
    return parse(repository["url"], repository["branch"])


def parse(url, branch):
    """Return the address that ``url`` and ``branch`` name, or end with one line that says what is wrong."""
    if not (found := re.fullmatch(rf"https://github\.com/({SLUG}?)(?:\.git)?/?", url)):
        sys.exit(f"The address must have the form https://github.com/owner/name, got {url!r}.")
    if not re.fullmatch(r"[\w./-]+", branch):
        sys.exit(f"The branch must be the name of a git branch, got {branch!r}.")
    return Address(found[1], branch)


def moved(text, stood, new):
    """Return ``text`` with every mention of the repositories ``stood`` turned into one of ``new``."""
    mention = r"((?:github\.com|/github|githubusercontent\.com)[/:]){}(?![\w-])"
    at_branch = r"((?:\.git)?(?:@|/blob/|/tree/|/raw/|/edit/)){}(?![\w-])"
    for old in stood:  # with their branches first: a mention without one is a part of a mention with one
        both = mention.format(re.escape(old.slug)) + at_branch.format(re.escape(old.branch))
        text = re.sub(both, rf"\g<1>{new.slug}\g<2>{new.branch}", text)
    for old in stood:
        text = re.sub(mention.format(re.escape(old.slug)), rf"\g<1>{new.slug}", text)
        text = re.sub(rf"{re.escape(old.site)}(?![\w.-])|{re.escape(old.site[:-1])}(?![\w./-])", new.site, text)
    return text


def configured(text, new):
    """Return the text of ``_config.yml`` with the new branch; its addresses move like all others."""
    return re.sub(r"(?m)^(repository:.*(?:\n(?:[ #].*)?)*?\n +branch: *)[^\s#]+", rf"\g<1>{new.branch}", text)


def files(root):
    """Yield the repository's text files."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in sorted(set(listed.stdout.split("\0")) - {""}):
        try:
            yield root / name, (root / name).read_text("utf-8")
        except (UnicodeDecodeError, OSError):  # a picture, or a file that is gone
            continue


def changes(new, root=ROOT):
    """Return ``{path: text}`` of all files that do not yet name the address ``new``, as they would be."""
    texts = dict(files(root))
    stood = {address(root)}
    for text in texts.values():
        for telltale in TELLTALES:
            stood |= {Address(slug, branch or new.branch) for slug, branch in re.findall(telltale, text, re.MULTILINE)}
    changed = {}
    for path, before in texts.items():
        after = moved(before, sorted(stood - {new}), new)
        if path == root / "_config.yml":
            after = configured(after, new)
        if after != before:
            changed[path] = after
    return changed


def main():
    if len(sys.argv) > 3:
        sys.exit(__doc__)
    new = address()
    if len(sys.argv) > 1:
        new = parse(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else new.branch)
    changed = changes(new)
    for path, text in changed.items():
        path.write_text(text, "utf-8")
        print(f"changed {path.relative_to(ROOT)}")
    print(
        f"Everything names {new.url}, branch {new.branch}, and the site {new.site}" if changed else "Nothing to change."
    )


if __name__ == "__main__":
    main()
