"""Repair: reclaim lost leases, late due rows, schedules, retention."""
