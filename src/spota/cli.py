"""The command line: `spota COMMAND …`. Each command is one function in `spota.commands`.

A command's module is imported when the command is asked for, so that `spota --help` answers at once.
"""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

import tyro
from rich.console import Console
from rich.markup import escape

from spota.sim import compiled
from spota.text import suggest

COMMANDS = {
    "envs": "List the platforms, with the distribution of every domain parameter.",
    "check": "Find out whether a simulator does what certificates take for granted, and what a certificate will cost.",
    "rollout": "Run a policy on random domains that it has never seen, and print what it earns.",
    "play": "Write an animated picture of the policy on the nominal domain and, beside it, on random ones.",
    "train": "Train a policy, and find out how much return it can lose on a domain that it has never seen.",
    "assess": "Find out how much return a policy can lose on a domain that it has never seen, wherever it comes from.",
    "reproduce": "Compute a figure of the paper, or a study behind this software, anew.",
    "deploy": "Run a policy on a machine: checks, calibration, placement, the run, and a safe stop from anywhere.",
    "trial": "Make the paper's trials on a machine: every policy from every start point, in random order.",
    "emulate": "Be a device: a machine from the table, in real time, with wear and faults that simulators leave out.",
    "domains": "Draw random domains and keep them in a file, so that people compare policies on the very same ones.",
    "sweep": "Sweep a domain parameter and see what each policy earns at every value; two parameters make a map.",
    "compare": "Compare policies on the same unseen domains, with the same start states and noise.",
    "explain": "Explain what a policy's return depends on.",
    "applies": "Find out whether recordings come from a machine of a table: whether a certificate speaks of yours.",
    "fit": "Learn from recordings which machine it is: a table of the machines that could have made them.",
    "report": "Write one page about a run: its certificate, how far to trust it, plots, and the policy at work.",
    "export": "Write a policy as an ONNX file that any runtime loads, with its contract and its certificate inside.",
    "verify": "Find out whether a run, or an exported policy, was edited, exchanged or damaged after it was written.",
}
"""Every command with the first line of its help; `spota.commands` has a module of each name."""
WRONG = 2
"""The exit code of what a user gets wrong, and of a simulator that breaks."""
ABOUT = (
    "Train control policies on randomized simulators, and know how much return they can lose on an unseen domain. "
    "`spota COMMAND --help` says more about a command, `spota --version` which version this is."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; what a user gets wrong ends with one clear sentence and exit code 2."""
    try:
        _run(list(sys.argv[1:] if arguments is None else arguments))
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ValueError, KeyError, OSError) as error:
        text = error.args[0] if isinstance(error, KeyError) else str(error)
        _say_error(str(text))
        sys.exit(WRONG)
    except MemoryError:
        _say_error("there is not enough memory for these sizes; choose smaller ones.")
        sys.exit(WRONG)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped.")
        sys.exit(130)


def _say_error(text: str) -> None:
    Console(stderr=True, emoji=False).print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)


def _run(arguments: list[str]) -> None:
    try:
        if arguments[:1] == ["--version"]:
            sys.stdout.write(f"spota {version('spota')}\n")
        elif arguments[:1] and arguments[0] in COMMANDS:
            compiled.keep_programs()
            importlib.import_module("spota.sim.devices").use_all_cores()
            importlib.import_module("spota.sim.watchdog").end_commands(_say_error, WRONG)
            tyro.cli(command(arguments[0]), prog=f"spota {arguments[0]}", args=arguments[1:])
        elif arguments[:1] and not arguments[0].startswith("-"):
            raise ValueError(f"There is no command {arguments[0]!r}; {suggest(arguments[0], COMMANDS)}")
        else:  # help
            tyro.extras.subcommand_cli_from_dict(_summaries(), prog="spota", description=ABOUT, args=arguments)
    finally:
        sys.stdout.flush()  # so that a closed pipe is noticed here


def command(name: str) -> Callable[..., None]:
    """The function of a command."""
    return getattr(importlib.import_module(f"spota.commands.{name}"), name)


def _summaries() -> dict[str, Callable[[], None]]:
    """Functions that have nothing but the first line of a command's help."""
    return {name: _summary(line) for name, line in COMMANDS.items()}


def _summary(line: str) -> Callable[[], None]:
    def nothing() -> None: ...

    nothing.__doc__ = line
    return nothing


if __name__ == "__main__":
    main()
