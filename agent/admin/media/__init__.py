"""The pages of files and stickers."""
