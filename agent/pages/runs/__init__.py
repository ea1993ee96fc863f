"""What a run did, as pages tell it."""
