"""What is known about F(w) − F*, and how it is found out: by duality over data, or by fresh samples."""
