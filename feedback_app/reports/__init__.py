"""A weekly report in words and pictures: what its page, its mail and its command show."""
