"""Groups of rows (class regression): one structure, some constants shared, some of each group's own."""
