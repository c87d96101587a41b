"""The command line: `spota COMMAND …`. Each command is one function in `spota.commands`."""

import os
import sys
from collections.abc import Sequence

import tyro
from rich.console import Console
from rich.markup import escape

from spota import devices
from spota.commands.assess import assess
from spota.commands.compare import compare
from spota.commands.domains import domains
from spota.commands.envs import envs
from spota.commands.explain import explain
from spota.commands.play import play
from spota.commands.report import report
from spota.commands.reproduce import reproduce
from spota.commands.rollout import rollout
from spota.commands.sweep import sweep
from spota.commands.train import train
from spota.commands.verify import verify

COMMANDS = {"envs": envs, "rollout": rollout, "play": play, "train": train, "assess": assess, "reproduce": reproduce}
COMMANDS |= {"domains": domains, "sweep": sweep, "compare": compare, "explain": explain, "report": report}
COMMANDS |= {"verify": verify}
ABOUT = "Train control policies on randomized simulators, and know how much return they can lose on an unseen domain."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; what a user gets wrong ends with one clear sentence and exit code 2."""
    devices.use_all_cores()
    try:
        _run(arguments)
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ValueError, KeyError, OSError) as error:
        text = error.args[0] if isinstance(error, KeyError) else str(error)
        _say_error(str(text))
        sys.exit(2)
    except MemoryError:
        _say_error("there is not enough memory for these sizes; choose smaller ones.")
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped.")
        sys.exit(130)


def _say_error(text: str) -> None:
    Console(stderr=True).print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)


def _run(arguments: Sequence[str] | None) -> None:
    try:
        tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="spota", description=ABOUT, args=arguments)
    finally:
        sys.stdout.flush()  # so that a closed pipe is noticed here


if __name__ == "__main__":
    main()
