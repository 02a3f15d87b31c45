"""What goes wrong around `plan`: killed, out of disk or memory, several at once, output that nobody reads."""
