"""The Pareto front of loss against complexity: its members, and the rules that choose one."""
