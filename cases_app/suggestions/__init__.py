"""What a session suggests for the case that was made of it. Pure: text in, suggestions and their evidence out.

`clues` says what is read; `categories`, `error_codes` and `answers` what is made of it. All of it is hostile text: it
may be empty, huge or nonsense, and nothing here raises, or takes longer than the text is long.
"""
