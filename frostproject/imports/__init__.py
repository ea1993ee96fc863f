"""Coming from elsewhere: what other programs keep becomes rows of this one."""
