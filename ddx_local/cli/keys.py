"""`ddx-local keys`: API keys for `ddx-local serve`: add, list, revoke."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Add, list and revoke API keys of `serve`.", no_args_is_help=True, rich_markup_mode=None)

KeysOption = Annotated[
    Path | None, typer.Option("--keys", metavar="FILE", help="File of keys. [keys.json beside the settings]")
]


@app.command("add", epilog="Example: ddx-local keys add --name ward-3 --scope ddx --scope panel")
def add(
    name: Annotated[str, typer.Option(help="Whose key it is: a program or a desk, no patient.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="raw, ddx, panel, metrics or admin; repeatable. [raw, ddx, panel]")
    ] = None,
    keys: KeysOption = None,
) -> None:
    """Make a key and show it, once; only its hash is kept."""
    import sys

    from ddx_local.cli.audited import record
    from ddx_local.server import keys as keys_

    path = keys or keys_.default_path()
    made, secret = keys_.add(path, name, scope or ["raw", "ddx", "panel"])
    record("key.add", made.id, scopes=list(made.scopes))
    print(secret)
    print(f"key {made.id} ({', '.join(made.scopes)}) is kept in {path}; it is not shown again", file=sys.stderr)


@app.command("list", epilog="Example: ddx-local keys list --json")
def list_keys(
    keys: KeysOption = None, json_out: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """All keys: id, scopes, name; never a secret."""
    import json

    from ddx_local.server import keys as keys_

    found = keys_.read(keys or keys_.default_path())
    if json_out:
        shown = [{"id": k.id, "name": k.name, "scopes": list(k.scopes), "created_at": k.created_at} for k in found]
        print(json.dumps(shown))
        return
    if not found:
        print("No keys yet: `serve` answers this machine alone. Try: ddx-local keys add --name NAME")
    for key in found:
        print(f"{key.id}  {','.join(key.scopes):20} {key.created_at}  {key.name}")


@app.command("revoke", epilog="Example: ddx-local keys revoke 1a2b3c4d")
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key's id or name.")], keys: KeysOption = None
) -> None:
    """Take a key away; a running server refuses it at once."""
    from ddx_local.cli.audited import record
    from ddx_local.server import keys as keys_

    gone = keys_.revoke(keys or keys_.default_path(), key)
    record("key.revoke", gone.id)
    print(f"key {gone.id} is revoked")
