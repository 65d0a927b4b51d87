"""The group of all commands: those of Karat's core, and those that extensions add."""

from __future__ import annotations

import click

from karat.cli.mistakes import Commands
from karat.core.extension import Command, builtin_extensions, commands, installed_extensions
from karat.core.registry import load_object


class AllCommands(Commands):
    """Commands, of which those of extensions are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *_added()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now if it is that of an extension."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        part = dict(commands(builtin_extensions())).get(cmd_name) or _added().get(cmd_name)
        if part is None:
            return None
        loaded: click.Command = load_object(part.path)
        return loaded

    def all_commands(self) -> dict[str, click.Command]:
        """Return every command by its name, all of them imported."""
        context = click.Context(self)
        found = {name: self.get_command(context, name) for name in self.list_commands(context)}
        return {name: command for name, command in found.items() if command is not None}

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text of the help without examples of commands that are not there."""
        whole, names = self.help or "", self.list_commands(ctx)
        lines = [line for line in whole.splitlines() if _names_one_of(line, names)]
        self.help = "\n".join(lines)
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing those of extensions."""
        shown = {name: click.Command(name, short_help=part.help) for name, part in _added().items()}
        shown |= self.commands
        limit = formatter.width - 6 - max(map(len, shown))
        rows = [
            (name, command.get_short_help_str(limit))
            for name, command in sorted(shown.items())
            if not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _names_one_of(line: str, commands: list[str]) -> bool:
    """Return whether a line of the help is no example, or one of these commands.

    >>> _names_one_of("karat race SUITE", ["run"]), _names_one_of("Evaluate models.", ["run"])
    (False, True)
    """
    words = line.split()
    return len(words) < 2 or words[0] != "karat" or words[1] in commands


def _added() -> dict[str, Command]:
    """Return the commands of all extensions, Karat's own before those of other packages."""
    return {**dict(commands(installed_extensions())), **dict(commands(builtin_extensions()))}
