"""`python -m tenure`: the command line, as `tenure` starts it."""

from tenure.cli import main

if __name__ == "__main__":
    main()
