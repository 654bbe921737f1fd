"""The texts that go into a bundle: how it is checked and installed, its starter, the models' licences."""

from collections.abc import Sequence

from ddx_local import DISCLAIMER
from ddx_local.model_card import ModelCard

BOOTSTRAP = '''"""Checks and installs this bundle with nothing but Python: see README.txt."""

import sys
from pathlib import Path

folder = Path(__file__).resolve().parent
wheels = sorted(folder.glob("wheels/ddx_local-*.whl"))
if len(wheels) != 1:
    sys.exit("install.py: wheels/ddx_local-*.whl is missing: carry the bundle over again")
sys.dont_write_bytecode = True
sys.path.insert(0, str(wheels[0]))

from ddx_local.airgap.starter import main  # noqa: E402

sys.exit(main(sys.argv[1:], folder))
'''

_README = """\
ddx-local {version}, bundle of {date} for {platform}: everything that a machine without network needs.
Models: {models}

{disclaimer}

1. Is it whole? With coreutils alone, in this folder:
       sha256sum -c --quiet SHA256SUMS

2. Is it genuine? With openssl alone. Compare the fingerprint with the one that its maker told you by another way:
       tail -n +2 bundle.pub | head -1 | base64 -d | tail -c 32 | sha256sum
       openssl pkeyutl -verify -pubin -inkey bundle.pub -rawin -in manifest.json -sigfile manifest.sig

3. Both at once, and whether it is for this machine (Python {python} needed, nothing else):
       python{python} install.py verify --key FINGERPRINT

4. Install, into a folder of yours:
       python{python} install.py install --prefix /opt/ddx-local --key FINGERPRINT
   Interrupted? Type the same again. Later bundles are installed the same way over it; the store of runs is not touched.

5. Try it:
       /opt/ddx-local/bin/ddx-local doctor --offline --model {model}
       /opt/ddx-local/bin/ddx-local diagnose cases/sudden-painful-toe.txt --model {model}

docs/deploy.md has the whole manual; deploy/ has the systemd unit and the container files; licences/ and sbom.cdx.json say
what is in here and under which terms.
"""


def readme(version: str, date: str, models: Sequence[str], platform: str, python: str) -> str:
    return _README.format(
        model=models[0],
        version=version,
        date=date,
        models=", ".join(models),
        platform=platform,
        python=python,
        disclaimer=DISCLAIMER,
    )


def model_licences(cards: Sequence[ModelCard]) -> str:
    """Which terms hold for which model, with the notices that have to be passed on."""
    lines = []
    for card in cards:
        doubt = " (as said of it; not checked at its source)" if "licence" in card.unchecked else ""
        lines.append(f"{card.name}: {card.licence}{doubt}")
        if card.licence_notice:
            lines.append(f"    {' '.join(card.licence_notice.split())}")
    return "\n".join(lines) + "\n"
