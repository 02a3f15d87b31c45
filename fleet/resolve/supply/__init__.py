"""Supply: hardware kinds, pools and regions, offers, and the prices that these name."""
