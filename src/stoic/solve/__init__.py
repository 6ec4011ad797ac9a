"""`minimize`: its arguments, its loop, the result and its message."""
