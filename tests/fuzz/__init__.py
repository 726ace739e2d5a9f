"""Calls drawn at random for every public name: what they are given, how they are run and what must come out.

``SOTDD_FUZZ=100000 pytest tests/project/test_fuzz.py`` draws that many. A call that failed is printed as a line, and
``cd tests && python -m fuzz 'THE LINE'`` makes it again.
"""
