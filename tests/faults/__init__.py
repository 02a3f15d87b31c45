"""Faults around `plan`: kills, a full disk, little memory, parallel runs, output without a reader."""
