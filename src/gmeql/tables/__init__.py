"""Users' tables: files read, cells judged, columns chosen for one target."""
