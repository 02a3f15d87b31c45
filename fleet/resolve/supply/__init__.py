"""Resolve supply: hardware, pools, regions, offers, and their prices."""
