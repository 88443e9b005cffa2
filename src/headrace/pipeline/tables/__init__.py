"""Tables that entries are kept in: Delta by delta-rs, or plain Parquet files."""
