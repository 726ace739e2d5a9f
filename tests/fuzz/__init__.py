"""Public calls with odd arguments (`table`), and random settings beside a brute force (`brute_force`)."""
