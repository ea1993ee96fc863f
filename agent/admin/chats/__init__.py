"""Pages of chats and of what was said in them."""
