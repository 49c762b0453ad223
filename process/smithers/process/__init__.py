"""What every process shares: settings, identity, service loop, child processes, kill."""
