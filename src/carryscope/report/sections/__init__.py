"""Parts by group: each module turns one kind of finding into parts, and those into sections."""
