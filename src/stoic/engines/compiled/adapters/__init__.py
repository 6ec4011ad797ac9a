"""Adapters: how a solver's state goes into its kernel and comes out again, one file a family."""
