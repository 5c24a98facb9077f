"""Runs every notebook as Colab would: alone in an empty folder, with Colab's versions, installing the package itself.

The environment .venv-colab has the versions of tools/colab.txt, and not the package. Each notebook runs in a fresh one
on top of that, which holds what its first cell installs, and nothing else. A server on this machine stands in for the
course's site, which has the wheel, and a copy of the working tree for the repository at its address.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import nbformat
from nbclient.exceptions import CellExecutionError

import build_wheel
import repository
from environment import make_venv
from notebook_labs import LAB, WIDGET
from notebooks import ROOT, all_notebooks, canonical, describe_failure, execute, ignored

VENV = ROOT / ".venv-colab"
LIST = ROOT / "tools" / "colab.txt"
CLIENT = "jupyter-client==7.4.9"  # which a kernel of that time needs
CPU = "https://download.pytorch.org/whl/cpu"  # PyPI's builds for Linux bring gigabytes for a GPU
NOWHERE = "http://127.0.0.1:9"  # where nothing answers
GIVES_UP_WITHIN = 60  # seconds in which an installation that cannot work must say so


# Colab's versions


def versions():
    """Return ``{name: version}`` of what Colab has, Python among it."""
    return dict(line.split("==") for line in LIST.read_text("utf-8").splitlines() if line and line[0] != "#")


def interpreter(version):
    """Return a Python of this version's first two numbers that runs and can make environments, or None."""
    name = "python" + ".".join(version.split(".")[:2])
    for found in [shutil.which(name), *Path.home().glob(f".pyenv/versions/*/bin/{name}")]:
        if found and not subprocess.run([found, "-c", "import ensurepip, venv"], capture_output=True).returncode:
            return str(found)
    return None


def reachable(index):
    try:
        return urllib.request.urlopen(f"{index}/torch/", timeout=10).status == 200
    except OSError:
        return False


def environment():
    """Make .venv-colab, once for each set of versions. What this machine cannot get of them is as in the book's."""
    wanted = versions()
    python, torch = interpreter(wanted["python"]), [f"torch=={wanted['torch']}", "--index-url", CPU]
    left = {"python", "torch"}
    if not reachable(CPU):  # then PyTorch and Python are those of the book, and setuptools what that PyTorch needs
        python, torch = None, re.findall(r"(?m)^torch==\S+", (ROOT / "requirements.txt").read_text("utf-8"))
        left |= {"setuptools"}
    pins = [f"{name}=={version}" for name, version in wanted.items() if name not in left]

    def install(venv_python):
        for packages in (torch, [*pins, CLIENT]):
            subprocess.run([venv_python, "-I", "-m", "pip", "install", "--quiet", *packages], check=True)

    made_from = "\n".join([python or sys.executable, sys.version, str(VENV), *torch, *pins, CLIENT])
    make_venv(str(VENV), made_from, install, python)


def isolated(venv):
    """Return the command of an environment's Python that sees nothing of the folder it is called in."""
    return [str(venv / "bin" / "python"), "-I"]


def installed(venv, *where):
    """Return ``{name: version}`` of the packages in an environment; of one folder only, with ``--path folder``."""
    listed = subprocess.check_output([*isolated(venv), "-m", "pip", "list", "--format=json", *where], text=True)
    return {package["name"].lower().replace("_", "-"): package["version"] for package in json.loads(listed)}


def python_of(venv):
    return subprocess.check_output([*isolated(venv), "-V"], text=True).split()[1]


def compared_with_colab(wanted, found):
    """Say in one line how an environment differs from Colab. Of Python's version, the first two numbers count."""
    short = {name: ".".join(wanted[name].split(".")[:2]) if name == "python" else wanted[name] for name in wanted}
    there = {
        name: re.match(rf"{re.escape(version)}\b|[^+]*", found.get(name, "none"))[0] for name, version in short.items()
    }
    names = [name for name in short if there[name] != short[name]]
    differ = [f"{name.replace('python', 'Python')} {there[name]} instead of {short[name]}" for name in names]
    return f"As in Colab, but {', '.join(differ)}." if differ else "As in Colab."


# What stands in for the network


def made_up_address(site):
    """Return the address of a course that is nobody's: GitHub allows no dot in an owner's name."""
    return repository.Address("example.invalid/transformer-lab", "main", site)


def checkout(folder, address):
    """Make a git repository of the working tree as it would be at an address, and return where git finds it."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in sorted(set(listed.split("\0")) - {""}):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for path, text in repository.changes(address, folder).items():
        path.write_text(text, "utf-8")
    git = ["git", "-c", "user.name=Colab", "-c", "user.email=colab@example.com", "-c", "commit.gpgsign=false"]
    for command in (
        ["init", "--quiet", "-b", address.branch],
        ["add", "-A"],
        ["commit", "--quiet", "-m", "As it is"],
    ):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder.as_uri()


class Site(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(folder):
    """Serve a folder, and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def variables(venv, git):
    """Return the environment variables of a kernel for which the course's address on GitHub leads to ``git``."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {
        **env,
        "PATH": f"{venv / 'bin'}{os.pathsep}{env['PATH']}",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # or the kernel warns about how Python was started
        "NO_PROXY": "127.0.0.1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{git}.insteadOf",
        "GIT_CONFIG_VALUE_0": made_up_address("").url,
    }


# Running


def site_packages(venv):
    return next((venv / "lib").glob("python3*/site-packages"))


def layered_venv(venv):
    """Make an environment that has what .venv-colab has, and room for what a notebook installs."""
    subprocess.run([*isolated(VENV), "-m", "venv", "--without-pip", venv], check=True)
    (site_packages(venv) / "colab.pth").write_text(str(site_packages(VENV)))


def asks_for_weights(notebook):
    """Whether a notebook looks for the published models, and leaves it to its reader to fetch them."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return "pretrained.installed()" in code and "pretrained.fetch()" not in code


def run(notebook, folder, git):
    """Run a notebook in an environment of its own, and return ``{name: version}`` of what it has installed."""
    venv, work = folder / "venv", folder / "work"
    layered_venv(venv)
    if asks_for_weights(notebook):
        fetch = [venv / "bin" / "python", "-m", "transformer_lab.pretrained"]
        subprocess.run(fetch, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    work.mkdir()
    kernel = Path(os.environ["JUPYTER_PATH"], "kernels", folder.name, "kernel.json")
    kernel.parent.mkdir(parents=True)
    launch = [str(venv / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": launch, "display_name": "Colab", "language": "python"}))
    execute(notebook, work, kernel=folder.name, env=variables(venv, git))
    return installed(venv, "--path", site_packages(venv))


def replaced(new, found):
    """Return in words which installed packages those of ``new`` replace."""
    return [f"{name} {found[name]} is replaced by {version}" for name, version in new.items() if name in found]


def try_plan(wheel, folder):
    """Ask pip what it would install with the wheel in Colab, and return what is wrong with that, and the plan."""
    layered_venv(folder / "venv")
    command = [*isolated(folder / "venv"), "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", wheel]
    plan = json.loads(subprocess.check_output(command, text=True))["install"]
    new = {item["metadata"]["name"].lower(): item["metadata"]["version"] for item in plan}
    return replaced(new, installed(VENV)), ", ".join(f"{name} {version}" for name, version in new.items())


def try_first_cell(address, git, folder):
    """Run the first cell and import the package, and return what was wrong, and how long the cell took."""
    sources = [
        "from time import perf_counter\nstart = perf_counter()",
        repository.first_cell(address),
        "print(perf_counter() - start)",
        "import transformer_lab",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    new = run(notebook, folder, git)
    return replaced(new, installed(VENV)), f"{float(notebook.cells[2].outputs[0].text):.1f} s in the cell"


def try_offline(folder):
    """Run the first cell where nothing answers, and return what was wrong, and what it says."""
    start = perf_counter()
    try:
        try_first_cell(made_up_address(f"{NOWHERE}/"), NOWHERE, folder)
        return ["the first cell passed without the package"], ""
    except CellExecutionError as error:
        if error.ename != "SystemExit" or "\n" in error.evalue or not error.evalue.endswith("Is this machine online?"):
            return [f"the first cell must say in one line what is wrong, said {error.ename}: {error.evalue}"], ""
        if perf_counter() - start > GIVES_UP_WITHIN:
            return [f"the first cell took over {GIVES_UP_WITHIN} s to say so"], ""
        return [], f"says: {error.evalue}"


def try_notebook(path, folder):
    """Run one notebook, which has only the site to install from, and return what was wrong with it."""
    stored, notebook = nbformat.read(path, 4), nbformat.read(path, 4)
    try:
        new = run(notebook, folder, NOWHERE)
    except CellExecutionError as error:
        return [describe_failure(notebook, error)], ""
    missing = [] if "transformer-lab" in new else ["the first cell did not install the package"]
    return [*missing, *replaced(new, installed(VENV)), *differences(stored, notebook)], ""


def comparable_outputs(cell):
    """What of a cell's outputs must be the same, as nbval sees it: everything but pictures.

    Beside a lab, ipywidgets 7 puts out no sentence as HTML.
    """
    return [(output.get("name"), output.get("text"), _comparable(output.get("data", {}))) for output in cell.outputs]


def _comparable(data):
    left = {"image/png", "text/html"} if LAB.match(data.get("text/plain", "")) else {"image/png"}
    return {mime: value for mime, value in data.items() if mime not in left}


def differences(stored, found):
    """Yield the cells whose outputs are not those stored, or where a lab shows no widget."""
    shown = canonical(found)
    first = next(number for number, cell in enumerate(stored.cells, 1) if cell.cell_type == "code")
    for number, (old, new) in enumerate(zip(stored.cells, shown.cells), 1):
        if old.cell_type != "code" or number == first or ignored(old):
            continue
        if comparable_outputs(old) != comparable_outputs(new):
            yield f"cell {number}: stored {comparable_outputs(old)}, found {comparable_outputs(new)}"
        labs = sum(bool(LAB.match(o.get("data", {}).get("text/plain", ""))) for o in old.outputs)
        views = sum(WIDGET in o.get("data", {}) for o in found.cells[number - 1].outputs)
        if views < labs:
            yield f"cell {number}: shows {labs} labs, and only {views} as widgets"


def main():
    environment()
    with TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["JUPYTER_PATH"] = str(place / "jupyter")
        wheels, copy = place / "site", place / "repository"
        wheels.mkdir(), copy.mkdir()
        site = serve(wheels)
        address = made_up_address(site)
        git = checkout(copy, address)
        build_wheel.build(wheels)
        print(compared_with_colab(versions(), {**installed(VENV), "python": python_of(VENV)}), flush=True)

        def work(trial):
            name, attempt = trial
            start = perf_counter()
            with TemporaryDirectory(dir=place) as folder:
                wrong, words = attempt(Path(folder))
            happened = "FAILED" if wrong else "passed"
            print(
                f"{name:40} {perf_counter() - start:6.1f} s  {happened}  {words}".rstrip(), *wrong, sep="\n", flush=True
            )
            return wrong

        trials = [
            ("pip's plan", partial(try_plan, address.wheel)),
            ("first cell, from the site", partial(try_first_cell, address, NOWHERE)),
            ("first cell, from git", partial(try_first_cell, made_up_address(f"{site}nothing/"), git)),
            ("first cell, from nowhere", try_offline),
        ]
        failed = [work(trial) for trial in trials]  # one at a time: they say how long the cell takes
        names = {path.relative_to(copy / "chapters").as_posix(): path for path in all_notebooks(copy)}
        asked = [name for name in names if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
        notebooks = [(name, partial(try_notebook, names[name])) for name in asked]
        with ThreadPoolExecutor(2) as pool:
            failed += pool.map(work, notebooks)
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
