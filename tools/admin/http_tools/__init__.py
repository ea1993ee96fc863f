"""The pages of HTTP tools and of their secrets, and the import of OpenAPI documents."""
