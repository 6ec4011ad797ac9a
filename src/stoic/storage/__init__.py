"""Files and folders: written in one move, sealed archives, and where caches lie."""
