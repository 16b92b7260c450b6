"""What a person or a program reads about a run; nothing here computes anything."""
