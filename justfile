# Short names for what a contributor runs; `just` alone lists them.
# They expect an environment made with: pip install --editable '.[test]'

default:
    @just --list

# the fast tests, in two processes
test:
    pytest -n 2

# the statistical and end-to-end tests, minutes
slow:
    pytest -m slow -n 2 --dist worksteal

# style and format
lint:
    ruff check .
    ruff format --check --exclude '*.md' .

# mypy, strict
types:
    mypy --strict
    mypy --strict tests/support/typed_options.py

# who may import whom
contracts:
    lint-imports

# the documentation site, in build/site (pip install --editable '.[docs]')
docs:
    sphinx-build --quiet --fail-on-warning --keep-going -c docs . build/site

# what every change must pass, in a fresh virtual environment
ci:
    .ci/run

# every test and every planted fault, in a fresh virtual environment
all:
    .ci/run --all

# every benchmark, one after the other; each prints a table
bench:
    for script in $(grep -l '__main__' benchmarks/*.py | grep -v run_all); do python "$script" || exit 1; done

# the figures that this project is measured by, by one command
targets:
    python benchmarks/run_all.py
