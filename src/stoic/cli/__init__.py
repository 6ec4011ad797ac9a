"""The command line: one file a command, which parses, calls one function of the library, and prints."""
