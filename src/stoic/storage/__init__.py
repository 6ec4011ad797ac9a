"""Files and folders: atomic writes, checks of outputs, archives with a checksum, and the cache folder."""
