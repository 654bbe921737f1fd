"""`ddx-local bundle`: everything that a machine without network needs, packed, checked and installed."""

from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(
    help="Carry the program and its models to a machine without network.", no_args_is_help=True, rich_markup_mode=None
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The bundle's folder.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="FINGERPRINT", help="Who has to have signed it: a fingerprint, or a bundle.pub file."
    ),
]
Unsigned = Annotated[bool, typer.Option("--allow-unsigned", help="Take a bundle that nobody signed.")]


@app.command("keygen", epilog="Example: ddx-local bundle keygen --out ~/ddx-key")
def keygen(out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to make; keep it to yourself.")]) -> None:
    """Make the key that signs bundles, and print its fingerprint, which you tell the other side by another way."""
    from ddx_local.airgap import keys
    from ddx_local.home import expanded

    print(keys.keygen(expanded(out)))


@app.command(
    "create",
    epilog="Example: ddx-local bundle create --model smollm2-135m --platform cpu --key ~/ddx-key --out /media/stick/ddx",
)
def create(
    model: Annotated[list[str], typer.Option("--model", metavar="NAME", help="A model of the store; repeatable.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to make; an interrupted one is taken up again.")],
    platform: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    key: Annotated[Path | None, typer.Option(metavar="KEYDIR", help="Key folder of `bundle keygen`.")] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Do not sign; the other side has to allow it.")] = False,
    lock: Annotated[Path | None, typer.Option(help="Hash-pinned lock. [requirements/PLATFORM.lock]")] = None,
    source: Annotated[Path | None, typer.Option(metavar="DIR", help="Take the wheels from here; no network.")] = None,
    own_wheel: Annotated[Path | None, typer.Option(metavar="FILE", help="ddx-local's wheel. [built here]")] = None,
    image: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A container image's archive to carry as well.")
    ] = None,
    embedding: Annotated[
        bool, typer.Option("--embedding/--no-embedding", help="Add the settings' embedding model, which methods need.")
    ] = True,
) -> None:
    """Pack wheels, models, manual, licences and a bill of materials, signed. Opens the network for wheels; it says so."""
    from ddx_local import offline
    from ddx_local.airgap.bundle_create import Order
    from ddx_local.airgap.bundle_create import create as create_bundle
    from ddx_local.errors import UsageError, nearest
    from ddx_local.home import expanded
    from ddx_local.settings import load

    offline.go_offline()
    kinds: tuple[Literal["cpu", "cuda"], ...] = ("cpu", "cuda")
    kind = next((kind for kind in kinds if kind == platform), None)
    if kind is None:
        raise UsageError(f"--platform {platform}: {nearest(platform, list(kinds))}")
    if (key is None) != unsigned:
        raise UsageError(
            "bundle create: give --key KEYDIR or --unsigned, one of the two", "Make a key: `ddx-local bundle keygen`."
        )
    names = list(dict.fromkeys([*model, *([load().embedding_model] if embedding else [])]))
    order = Order(
        models=names,
        platform=kind,
        out=expanded(out).absolute(),
        key=expanded(key) if key else None,
        lock=lock,
        source=source,
        own_wheel=own_wheel,
        image=image,
    )
    print(create_bundle(order, say=_say) or "unsigned")


@app.command("verify", epilog="Example: ddx-local bundle verify /media/stick/ddx --key FINGERPRINT")
def verify(folder: Folder, key: Key = None, allow_unsigned: Unsigned = False) -> None:
    """Check the signature and every digest, and that nothing is missing, added, or a pickle."""
    from ddx_local import offline
    from ddx_local.airgap import keys
    from ddx_local.airgap.bundle_verify import verify as verify_bundle

    offline.go_offline()
    found = verify_bundle(folder, key=keys.expected(key) if key else None, allow_unsigned=allow_unsigned, say=_say)
    table = found.manifest
    print(
        f"whole: ddx-local {table.package} for {table.platform}, made {table.created_at}, with {', '.join(table.models)}"
    )


@app.command(
    "install", epilog="Example: ddx-local bundle install /media/stick/ddx --prefix /opt/ddx-local --key FINGERPRINT"
)
def install(
    folder: Folder,
    prefix: Annotated[Path, typer.Option(metavar="DIR", help="Folder to install into.")],
    key: Key = None,
    allow_unsigned: Unsigned = False,
    allow_downgrade: Annotated[bool, typer.Option("--allow-downgrade", help="Go back to an older bundle.")] = False,
    accept_licence: Annotated[bool, typer.Option("--accept-licence", help="Accept the models' terms.")] = False,
    run_doctor: Annotated[
        bool, typer.Option("--doctor/--no-doctor", help="Let the installed doctor look at the end.")
    ] = True,
) -> None:
    """Verify a bundle and install it; typed again after an interruption it ends well. No network."""
    from ddx_local import offline
    from ddx_local.airgap import keys
    from ddx_local.airgap.bundle_install import Wish, doctor
    from ddx_local.airgap.bundle_install import install as install_bundle

    offline.go_offline()
    wish = Wish(
        prefix=prefix,
        key=keys.expected(key) if key else None,
        allow_unsigned=allow_unsigned,
        allow_downgrade=allow_downgrade,
        accept_licence=accept_licence,
    )
    command = install_bundle(folder, wish, say=_say)
    print(command, flush=True)
    if run_doctor and (code := doctor(command, folder)):
        raise typer.Exit(code)


def _say(line: str) -> None:
    import sys

    print(line, file=sys.stderr, flush=True)
