"""Laws of motion: ordinary differential equations found in measured trajectories."""
