"""Files and folders: atomic writes, archives with a checksum, and the cache folder."""
