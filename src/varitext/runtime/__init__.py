"""Where and how computation runs: devices, threads, processes, interruption."""
