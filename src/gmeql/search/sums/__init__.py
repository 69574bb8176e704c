"""Sums of many columns and curves of one: what everybody tries first."""
