"""The product in a minute: a run of the repository-health workflow, killed three times."""
