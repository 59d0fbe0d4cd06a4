"""``python -m ltr_features`` works like the command ``ltr-features``."""

from ltr_features.cli import main

if __name__ == "__main__":
    main()
