"""The command that serves a folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli.options import SETTINGS, define_option, option, repeatable


@click.command(context_settings=SETTINGS, short_help="Serve the report with a JSON API.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@option("--host", "Address to listen on.", default="127.0.0.1")
@option(
    "--port", "Port to listen on; 0: any free port.", type=click.IntRange(0, 65535), default=8765
)
@option(
    "--token-file FILE",
    "Token required to upload files or start evaluations (or set KARAT_TOKEN). Without one, "
    "both are disabled.",
    type=click.Path(path_type=Path),
)
@repeatable(
    "--allow-host NAME", "Additional host name of this server. Repeatable.", dest="allow_hosts"
)
@option(
    "--max-upload MB", "Maximum size of an upload.", type=click.IntRange(1, 100_000), default=256
)
@option(
    "--queue N", "Maximum number of queued evaluations.", type=click.IntRange(1, 1000), default=8
)
@option(
    "-c, --constraint NAME",
    "Limits of evaluations started over the web (karat list constraints).",
    default="served",
)
@option(
    "-w, --workers N",
    "Number of worker processes of an evaluation.",
    type=click.IntRange(1, 1024),
    default=1,
)
@define_option
@option(
    "--geval-gold DIR",
    "Gold standards of GEval in its layout.  [default: those installed or cached]",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@option("--open", "Open the page in a browser.", dest="show", is_flag=True)
def serve(
    folder: Path, token_file: Path | None, max_upload: int, show: bool, **options: Any
) -> int:
    """Serve the runs in DIR as a live page with a JSON API (http://127.0.0.1:8765/).

    \b
    Examples:
      karat serve results
      karat serve results --port 0 --open
      karat serve results --token-file token.txt --max-upload 100

    Exit code: 0 after SIGTERM, 130 after Ctrl-C (a running evaluation can be resumed later),
    2 after an error, such as a port that is already in use.
    """
    from karat.ext.serve.server import (
        MEGABYTE,
        ServerSettings,
        is_loopback,
        is_readable_by_others,
        read_token,
    )
    from karat.ext.serve.server import serve as run

    token = read_token(token_file)
    settings = ServerSettings(folder, token=token, max_upload=max_upload * MEGABYTE, **options)
    if token_file is not None and is_readable_by_others(token_file):
        click.echo(f"note: other users can read {token_file}; chmod 600 {token_file}", err=True)
    if not is_loopback(settings.host):
        click.echo(
            "note: everyone who reaches this machine can read these runs; see docs/serve.md",
            err=True,
        )

    def ready(address: str) -> None:
        click.echo(f"{folder} at {address}   (API: {address}docs; stop with Ctrl-C)")
        if show:
            click.launch(address)

    return run(settings, ready)
