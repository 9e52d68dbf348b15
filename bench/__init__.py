"""Speed and memory, with numbers anybody can take again. Nothing here is a test."""
