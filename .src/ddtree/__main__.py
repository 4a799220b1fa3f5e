"""`python -m ddtree` is the `ddtree` command."""

from .cli.start import main

if __name__ == "__main__":
    main()
