"""Speed figures: each a ratio taken in one run, but for the seconds. `scripts/speed` prints them."""
