"""`python -m varitext`, which is how `torchrun` starts it: torchrun -m varitext fit ..."""

from varitext.cli import main

if __name__ == "__main__":  # processes that count words import this file too
    main()
