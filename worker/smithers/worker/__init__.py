"""Run: claim into free slots, run attempts in child processes, complete."""
