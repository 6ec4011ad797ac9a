"""Certificates: bounds on F(w) − F*, by duality over all data or from fresh samples."""
