"""`tenure completion`: what a shell needs to complete the commands."""

from typing import Annotated, Literal

from cyclopts import Parameter


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")], /
) -> None:
    """Print a completion script for a shell, to be saved in a file that the shell reads.

    bash: ~/.local/share/bash-completion/completions/tenure; zsh: _tenure in a directory of $fpath;
    fish: ~/.config/fish/completions/tenure.fish.
    """
    from tenure.cli.app import build

    print(build().generate_completion(prog_name="tenure", shell=shell))
