"""The engine, which knows no XC: items, whether they still make what is committed, what is recorded of them, and the runner."""
