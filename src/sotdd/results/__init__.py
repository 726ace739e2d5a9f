"""The results that calls return: frozen values that print and draw themselves."""
