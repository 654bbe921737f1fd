"""`python3 install.py` in a bundle: verify and install where nothing but Python is there. Standard library only."""

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from ddx_local.airgap import keys
from ddx_local.airgap.bundle_checks import fits
from ddx_local.airgap.bundle_install import Wish, doctor, install
from ddx_local.airgap.bundle_verify import verify
from ddx_local.errors import DdxLocalError


def main(arguments: Sequence[str], folder: Path) -> int:
    """Runs one of the two verbs on the bundle `folder`; returns an exit code, those of `ddx-local`."""
    parser = argparse.ArgumentParser("install.py", description="Check and install this bundle, without any network.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    both = argparse.ArgumentParser(add_help=False)
    both.add_argument("--key", help="fingerprint of who has to have signed it")
    both.add_argument("--allow-unsigned", action="store_true", help="take a bundle that nobody signed")
    verbs.add_parser("verify", parents=[both], help="is it whole, genuine, and for this machine")
    installing = verbs.add_parser("install", parents=[both], help="verify it, then install it")
    installing.add_argument("--prefix", type=Path, required=True, help="folder to install into")
    installing.add_argument("--allow-downgrade", action="store_true", help="go back to an older bundle")
    installing.add_argument("--accept-licence", action="store_true", help="accept the models' terms")
    installing.add_argument("--no-doctor", action="store_true", help="do not run the doctor at the end")
    given = parser.parse_args(arguments)
    try:
        key = keys.expected(given.key) if given.key else None
        if given.verb == "verify":
            fits(verify(folder, key=key, allow_unsigned=given.allow_unsigned, say=_say).manifest)
            print("whole, genuine" if not given.allow_unsigned else "whole")
            return 0
        wish = Wish(
            prefix=given.prefix,
            key=key,
            allow_unsigned=given.allow_unsigned,
            allow_downgrade=given.allow_downgrade,
            accept_licence=given.accept_licence,
        )
        command = install(folder, wish, say=_say)
    except DdxLocalError as error:
        end = "" if error.message.endswith((".", "?", "!")) else "."
        print(
            textwrap.fill(f"install.py: {error.message}{end} {error.hint}".strip(), 110, break_long_words=False),
            file=sys.stderr,
        )
        return error.exit_code
    return 0 if given.no_doctor else doctor(command, folder)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
