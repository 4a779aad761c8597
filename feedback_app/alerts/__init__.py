"""What alerts say, to people and to programs."""
