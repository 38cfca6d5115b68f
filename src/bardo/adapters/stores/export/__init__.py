"""Copy the rows of the inference log to other places: Parquet, JSON lines and CSV files, and tables of ClickHouse."""
