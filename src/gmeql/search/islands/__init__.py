"""Islands: networks with structure parameters and elites, their steps, and which of them opens next."""
