"""One file per model runner and range of versions, each with its `RECIPE`."""
