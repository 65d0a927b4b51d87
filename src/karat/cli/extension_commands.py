"""The group of all commands: those of Karat's core, and those that extensions add."""

from __future__ import annotations

import click

from karat.cli.mistakes import Commands
from karat.core.extension import Command, builtin_extensions, commands, installed_extensions
from karat.core.registry import load_object

#: the groups of the help, and the commands of the core in each; extensions name their group
CORE_COMMANDS = {
    "Evaluate": ("run", "plan", "list", "show", "check"),
    "Understand": ("leaderboard", "compare", "robustness", "rescore", "report"),
    "Decide": (),
    "Share": (),
    "Scale": (),
}
#: the group of commands of other packages that name none of these groups
MORE = "More"


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
        commands = {name: self.get_command(context, name) for name in self.list_commands(context)}
        return {name: command for name, command in commands.items() if command is not None}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every command once, by group, without importing those of extensions."""
        members: dict[str, dict[str, str]] = {group: {} for group in (*CORE_COMMANDS, MORE)}
        for group, names in CORE_COMMANDS.items():
            members[group] = {name: self.commands[name].get_short_help_str(200) for name in names}
        for name, part in _added().items():
            if not part.hidden and name not in self.commands:
                members[part.group if part.group in CORE_COMMANDS else MORE][name] = part.help
        widest = max(len(name) for texts in members.values() for name in texts)
        limit = formatter.width - 6 - widest
        for group, texts in members.items():
            rows = [
                (name.ljust(widest), click.Command(name, help=text).get_short_help_str(limit))
                for name, text in texts.items()
            ]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def _added() -> dict[str, Command]:
    """Return the commands of all extensions, Karat's own before those of other packages."""
    return {**dict(commands(installed_extensions())), **dict(commands(builtin_extensions()))}
