"""What speaks for another member than the front's own choice: chance, outliers, series, plain numbers."""
