"""What authors import, and the pure core that follows from it."""
