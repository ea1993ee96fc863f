"""The load benchmark: a fake model, fake OneBot clients, and the server between them. See
README.md."""
