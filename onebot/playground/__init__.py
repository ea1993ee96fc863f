"""The playground: a page of the admin that is a OneBot client in the browser."""
