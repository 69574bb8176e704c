"""Waves: their frequencies by periodograms and scans, and what stands before and beside them."""
