# python3 with DuckDB, as after `pip install duckdb`.
PATH=$(dirname "$(tests/support/python/install.sh)"):$PATH
