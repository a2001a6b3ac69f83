"""`python -m leasehold`: the command line, as `leasehold` starts it."""

from leasehold.cli import main

if __name__ == "__main__":
    main()
