"""`python -m offline_judge`: the command line."""

from offline_judge.cli.main import main

if __name__ == "__main__":
    main()
