"""Arrays on a device: `Array`, where its memory is, and how others' arrays come in and go out."""
