"""``karat serve``: the page of a folder of runs, live, with a JSON API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, define


@click.command(context_settings=SETTINGS)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0 takes any free one.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who has this token may upload and evaluate; also KARAT_TOKEN. Without it nobody may.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Another name that people reach this server by. Repeatable.",
)
@click.option(
    "--max-upload",
    type=click.IntRange(1, 100_000),
    default=256,
    show_default=True,
    metavar="MB",
    help="The largest upload.",
)
@click.option(
    "--queue",
    type=click.IntRange(1, 1000),
    default=8,
    show_default=True,
    metavar="N",
    help="At most so many evaluations wait.",
)
@click.option(
    "-c",
    "--constraint",
    default="served",
    show_default=True,
    metavar="NAME",
    help="Limits of what is evaluated over the web: karat list constraints.",
)
@click.option(
    "-w",
    "--workers",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    metavar="N",
    help="Worker processes of an evaluation.",
)
@define
@click.option("--open", "show", is_flag=True, help="Open the page in a browser.")
def serve(folder: Path, token_file: Path | None, max_upload: int, show: bool, **given: Any) -> int:
    """Show the runs below DIR as a live page with a JSON API, at http://127.0.0.1:8765/.

    \b
    Examples:
      karat serve results
      karat serve results --port 0 --open
      karat serve results --token-file token.txt --max-upload 100

    Exit code: 0 ended by SIGTERM, 130 by Ctrl-C; both stop a running evaluation so that it can
    be resumed. 2 a mistake in what was asked, or the port is taken.
    """
    from karat.serve.server import serve as run
    from karat.serve.settings import MEGABYTE, Settings, is_loopback, is_open_to_others, read_token

    token = read_token(token_file)
    settings = Settings(folder, token=token, max_upload=max_upload * MEGABYTE, **given)
    if token_file is not None and is_open_to_others(token_file):
        click.echo(f"note: others can read {token_file}; chmod 600 {token_file}", err=True)
    if not is_loopback(settings.host):
        click.echo(
            "note: whoever reaches this machine can read these runs; see docs/serve.md", err=True
        )

    def ready(address: str) -> None:
        click.echo(f"{folder} at {address}   (API: {address}api; Ctrl-C ends it)")
        if show:
            click.launch(address)

    return run(settings, ready)
