"""Many runs: seeds at a time, and sweeps over settings."""
