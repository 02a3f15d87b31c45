"""What `plan landscape` asks, prints, draws and explains."""
