"""Many runs: seeds at a time, sweeps over settings, and processes that share such work."""
