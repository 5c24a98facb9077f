"""Sets the course's address on GitHub, and writes it into the notebooks, the README, the pages and the citation file.

python tools/repository.py [URL] [--branch BRANCH]  URL: https://github.com/you/your-fork, or else git's remote origin
python tools/repository.py --warn                   warns when the stored address is not that of this repository
python tools/repository.py --demand                 ends with one sentence if no address is set
python tools/repository.py --check                  lists the files that do not agree with the stored address

The address is in _config.yml. Until an address is set, it is NOWHERE, which nobody can own and which no link or install
line uses. To remove an address, pass NOWHERE as the URL.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import nbformat
import yaml

import build_wheel
import notebooks

ROOT = Path(__file__).resolve().parents[1]
NOWHERE = "https://example.invalid/transformer-lab"  # no host can have such a name (RFC 2606)
HINT = "make repository URL=https://github.com/you/your-fork"
NO_ADDRESS = f"The course has no address yet, and is not published without one: {HINT}"


class Address(NamedTuple):
    """A repository on GitHub: ``owner/name``, the branch for readers, and the site with the book."""

    slug: str
    branch: str
    site: str

    @property
    def url(self):
        return f"https://github.com/{self.slug}"

    @property
    def install(self):
        """The git source for pip."""
        return f"git+{self.url}@{self.branch}"

    @property
    def wheel(self):
        """The wheel on the site, from which pip installs four times as fast as from git."""
        return self.site + build_wheel.filename()

    def colab(self, path):
        """Return the link that opens a notebook of the repository in Colab."""
        return f"https://colab.research.google.com/github/{self.slug}/blob/{self.branch}/{path}"


def pages_site(slug):
    """Return the address of a repository's book on GitHub Pages."""
    owner, name = slug.split("/")
    host = f"{owner.lower()}.github.io"
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"


# Reading the address

SLUG = r"[\w.-]+/[\w.-]+?"
REMOTE = rf"(?:https://(?:[^@/]+@)?|ssh://git@|git@)github\.com[:/]({SLUG})(?:\.git)?/?"


def parse_address(url, branch):
    """Return the address for ``url`` and ``branch``, or None for NOWHERE; exit with one line if either is wrong."""
    if (urlsplit(url).hostname or "").endswith(".invalid"):
        return None
    if not (match := re.fullmatch(rf"https://github\.com/({SLUG})(?:\.git)?/?", url)):
        sys.exit(f"URL must have the form https://github.com/owner/name, got {url!r}.")
    if not re.fullmatch(r"[\w./-]+", branch):
        sys.exit(f"BRANCH must be the name of a git branch, got {branch!r}.")
    return Address(match[1], branch, pages_site(match[1]))


def settings(root=ROOT):
    return yaml.safe_load((root / "_config.yml").read_text("utf-8"))


def stored_address(root=ROOT):
    """Return the address in ``_config.yml``, or None if no address is set."""
    config = settings(root)
    stored = parse_address(config["repository"]["url"], config["repository"]["branch"])
    return stored and stored._replace(site=config["html"]["baseurl"] or stored.site)


def origin_url(root=ROOT):
    """Return the URL of the GitHub repository that is git's remote ``origin``, or exit with a one-line error."""
    remote = subprocess.run(["git", "remote", "get-url", "origin"], cwd=root, capture_output=True, text=True)
    if remote.returncode:
        sys.exit(f"URL must be given, since git knows no remote named origin here: {HINT}")
    if not (match := re.fullmatch(REMOTE, remote.stdout.strip())):
        remote_url = re.sub(r"//[^/]*@", "//", remote.stdout.strip())  # without a password
        sys.exit(f"URL must be given, since git's remote origin, {remote_url!r}, is not on GitHub: {HINT}")
    return f"https://github.com/{match[1]}"


def address_mismatch(stored, root=ROOT):
    """Return a sentence if the stored address is not that of this repository, else None."""
    actual = os.environ.get("GITHUB_REPOSITORY")
    if not actual:
        try:
            actual = origin_url(root).removeprefix("https://github.com/")
        except SystemExit:  # the repository's address is not known
            return None
    if stored and stored.slug.lower() == actual.lower():
        return None
    state = f"The stored address is {stored.url}" if stored else "No address is stored"
    return f"{state}, but this repository is {actual}: make repository URL=https://github.com/{actual}"


def branch_mismatch(branch, root=ROOT):
    """Return a sentence if a branch other than ``branch`` is checked out, else None."""
    git = subprocess.run(["git", "branch", "--show-current"], cwd=root, capture_output=True, text=True)
    current = git.stdout.strip()
    if current and current != branch:
        return f"Links lead to the branch {branch}. If your readers use {current}, add BRANCH={current}."
    return None


# Writing the address

FIRST_CELL = """\
# Makes the notebook complete on its own: installs the course's package if it is missing, as in Colab.
import importlib.util, os, subprocess, sys

if importlib.util.find_spec("transformer_lab") is None:
    sources = [
        "{wheel}",
        "{install}",
    ]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    quiet = {{"capture_output": True, "env": {{**os.environ, "GIT_TERMINAL_PROMPT": "0"}}}}
    if all(subprocess.run([*pip, source], **quiet).returncode for source in sources):
        places = " or ".join(sources)
        raise SystemExit(f"The course's package could not be installed from {{places}}. Is this machine online?")"""
FIRST_CELL_WITHOUT_ADDRESS = """\
# Says what to do if the course's package is missing.
import importlib.util

if importlib.util.find_spec("transformer_lab") is None:
    raise SystemExit(
        "The course's package is missing. Run %pip install FOLDER, where FOLDER is your copy of the course."
    )"""

# The parts of the Markdown files between <!-- address: NAME --> and <!-- end -->: for each name, the text with an
# address, and the text without one.
PARTS = {
    "read": (
        "**Read it** at <{site}>, or build the same book on your own machine, where it works from disk with the "
        "network off.\n\n**Run it** in Colab: {chapters}. An assignment has its link to Colab at its top.",
        "**Read it** on your own machine: `make book` builds the pages, which work from disk, even with the network "
        "off.",
    ),
    "install": ('```\npip install "{install}"\n```', "In a copy of this repository:\n\n```\npip install .\n```"),
    "colab": (
        "- **Run it in Colab.** The *Colab* button above a chapter opens it as a notebook. Its first cell installs the "
        "course's\n  package.",
        "",
    ),
}


def first_cell(address):
    """Return the first code cell of every notebook."""
    return FIRST_CELL.format(wheel=address.wheel, install=address.install) if address else FIRST_CELL_WITHOUT_ADDRESS


def notebook_with_address(text, address, path):
    """Return a notebook's text with its link to Colab and its first code cell."""
    parsed = nbformat.reads(text, 4)
    opening = f"[Open in Colab]({address.colab(path)}) · a" if address else "A"
    first = parsed.cells[0]
    first.source = re.sub(
        r"(?m)^(?:\[Open in Colab\]\(\S*\) · a|A)(?=bout \d+ (?:minutes|hours))", opening, first.source, count=1
    )
    next(cell for cell in parsed.cells if cell.cell_type == "code").source = first_cell(address)
    return notebooks.text(parsed)


def markdown_with_address(text, address, chapters):
    """Return a Markdown file's text after an update of the parts that depend on the address."""

    def replace_part(match):
        opening, name, end = match.groups()
        part = (
            PARTS[name][0].format(site=address.site, install=address.install, chapters=chapters)
            if address
            else PARTS[name][1]
        )
        return f"{opening}{part}\n{end}" if part else opening + end

    return re.sub(r"(?ms)^( *<!-- address: (\w+) -->\n).*?^( *<!-- end -->)$", replace_part, text)


def citation_with_address(text, address):
    """Return the text of ``CITATION.cff``, whose last two lines name the repository and the site."""
    text = re.sub(r"(?m)^(?:repository-code|url): .*\n", "", text)
    return f"{text}repository-code: {address.url}\nurl: {address.site}\n" if address else text


def config_with_address(text, address):
    """Return the text of ``_config.yml`` with the address."""
    values = [
        ("repository", "url", address.url if address else NOWHERE),
        ("repository", "branch", address.branch if address else "main"),
        ("html", "baseurl", address.site if address else '""'),
    ]
    for block, name, value in values:
        text = re.sub(rf"(?m)^({block}:.*(?:\n(?:[ #].*)?)*?\n +{name}: *)[^\s#]+", rf"\g<1>{value}", text)
    return text


def changes(address, root=ROOT):
    """Return ``{path: new text}`` for all files that do not yet agree with the address."""
    names_by_path = {path: path.relative_to(root).as_posix() for path in notebooks.all_notebooks(root)}
    chapters = " · ".join(link(path, address) for path in names_by_path if address and notebooks.is_chapter(path))
    texts = {
        path: notebook_with_address(path.read_text("utf-8"), address, handed_out(name))
        for path, name in names_by_path.items()
    }
    for path in [*root.glob("*.md"), *root.glob("chapters/*.md")]:
        texts[path] = markdown_with_address(path.read_text("utf-8"), address, chapters)
    for name, rewrite in {"CITATION.cff": citation_with_address, "_config.yml": config_with_address}.items():
        texts[root / name] = rewrite((root / name).read_text("utf-8"), address)
    return {path: text for path, text in texts.items() if text != path.read_text("utf-8")}


def handed_out(name):
    """Return the notebook that the link in ``name`` opens: for a solution, its assignment, which has the same text."""
    return name.replace("/solutions/", "/assignments/")


def link(path, address):
    """Return the README's link to a chapter, with the chapter's title as its text."""
    title = re.match(r"# (\d+) · (.+)", nbformat.read(path, 4).cells[0].source)
    return f"[{title[1]} {title[2]}]({address.colab(f'chapters/{path.name}')})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", metavar="URL", help="https://github.com/owner/name; default: git's origin")
    parser.add_argument("--branch", metavar="BRANCH", help="the branch that readers get; default: the stored one")
    parser.add_argument(
        "--warn", action="store_true", help="warn when the stored address is not that of this repository"
    )
    parser.add_argument("--demand", action="store_true", help="end with one sentence if no address is set")
    parser.add_argument("--check", action="store_true", help="list the files that do not agree with the stored address")
    arguments = parser.parse_args()
    stored = stored_address()
    if arguments.demand and not stored:
        sys.exit(NO_ADDRESS)
    if arguments.warn or arguments.demand:
        if sentence := address_mismatch(stored):
            print(f"::warning::{sentence}" if "GITHUB_ACTIONS" in os.environ else sentence)
        return
    if arguments.check:
        if outdated := [str(path.relative_to(ROOT)) for path in changes(stored)]:
            url = stored.url if stored else NOWHERE
            sys.exit(f"Outdated links or install lines: {', '.join(outdated)}. Run `make repository URL={url}`.")
        print("Links and install lines agree with the course's address.")
        return
    address = parse_address(arguments.url or origin_url(), arguments.branch or settings()["repository"]["branch"])
    if stored and address and stored.slug == address.slug:
        address = address._replace(site=stored.site)  # which may be a custom domain
    new_texts = changes(address)
    for path, text in new_texts.items():
        path.write_text(text, "utf-8")
        print(f"changed {path.relative_to(ROOT)}")
    if not new_texts:
        print("Nothing to change.")
    print(
        f"The course's address: {address.url}, branch {address.branch}, site {address.site}"
        if address
        else "No address is set."
    )
    if address and not arguments.branch and (sentence := branch_mismatch(address.branch)):
        print(sentence)


if __name__ == "__main__":
    main()
