"""Decide: take a dirty run, load, render, plan, commit one frame."""
