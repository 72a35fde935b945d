"""What was typed and cannot be understood, in one sentence with the nearest thing that can be."""

from __future__ import annotations

from typing import Any

import typer

from fedstruct.errors import FedstructError, unknown

# typer keeps its own copy of click's errors, and names but this one of them.
UsageError: Any = typer.BadParameter.__mro__[1]
"""The error that typer raises for a mistake in what was typed."""


def sentence(error: Any, typed: list[str]) -> FedstructError:
    """typer's complaint as the project says things."""
    context = error.ctx
    if context is not None and hasattr(error, "option_name") and hasattr(error, "possibilities"):
        return unknown("flag", error.option_name, _flags(context.command), _help(context))
    commands = getattr(getattr(context, "command", None), "commands", {})
    words = [word for word in typed if not word.startswith("-")]
    if commands and words and words[0] not in commands:
        return unknown("command", words[0], commands)
    text = error.format_message().rstrip(".")
    return FedstructError(f"{text[:1].lower()}{text[1:]}{'' if context is None else _help(context)}")


def _flags(command: Any) -> list[str]:
    named = [flag for p in command.params for flag in (*p.opts, *p.secondary_opts)]
    return [flag for flag in named if flag.startswith("-")] + ["--help"]


def _help(context: Any) -> str:
    return f"; {context.command_path} --help lists what there is"
